#include "autograd/ops/rope.h"

#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/ops/copy.h"
#include "autograd/ops/pointwise.h"
#include "tensor/create.h"
#include "tensor/parallel.h"
#include "tensor/random.h"
#include "tests/reference/rope.h"
#include "tests/temporary_folder.h"

namespace strata {
namespace {

using test::error_of;

double angle(int64_t position, int64_t i, int64_t R) {
  return static_cast<double>(position) * std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(R));
}

struct Tables {
  Tensor cos, sin;
};

Tables tables(int64_t count, int64_t R, DType dtype = DType::f64) {
  std::vector<double> c, s;
  for (int64_t t = 0; t < count; ++t)
    for (int64_t i = 0; i < R / 2; ++i) {
      c.push_back(std::cos(angle(t, i, R)));
      s.push_back(std::sin(angle(t, i, R)));
    }
  return {clone_data(from_values(c, {count, R / 2}), dtype), clone_data(from_values(s, {count, R / 2}), dtype)};
}

Tensor random_rows(int64_t N, int64_t H, int64_t D, DType dtype) {
  Generator generator(5);
  return clone_data(randn({N, H, D}, generator), dtype);
}

Tensor i32(const std::vector<int64_t>& values) {
  return clone_data(from_values(values, {static_cast<int64_t>(values.size())}), DType::i32);
}

void expect_rope(const Tensor& x, int64_t R, DType table, double tolerance) {
  std::vector<int64_t> positions;
  for (int64_t n = 0; n < x.size(0); ++n) positions.push_back((n * 37) % 128);
  auto t = tables(128, R, table);
  Tensor y = rope(x, t.cos, t.sin, i32(positions));
  EXPECT_EQ(y.dtype(), x.dtype());
  auto expected = reference::rope({x.shape(), to_vector<double>(x)}, R, positions,
                                  [&](int64_t p, int64_t i) { return angle(p, i, R); });
  auto got = to_vector<double>(y);
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], expected.values[i], tolerance * (1 + std::abs(expected.values[i]))) << i;
}

TEST(Rope, EqualsTheDefinition) {
  for (auto [N, H, D, R] :
       {std::array<int64_t, 4>{1, 1, 2, 2}, {7, 3, 64, 64}, {5, 2, 20, 12}, {3, 1, 8, 0}, {0, 2, 8, 8}}) {
    expect_rope(random_rows(N, H, D, DType::f64), R, DType::f64, 1e-14);
    expect_rope(random_rows(N, H, D, DType::f32), R, DType::f32, 5e-7);
    expect_rope(random_rows(N, H, D, DType::f16), R, DType::f32, 5e-4);
    expect_rope(random_rows(N, H, D, DType::bf16), R, DType::f32, 4e-3);
  }
}

// Pair (i, i + 32) of a head of 64, as Hugging Face pairs them; at positions where a wrong pairing shows.
TEST(Rope, PairsAreHalfAHeadApart) {
  auto t = tables(128, 64);
  for (int64_t position : {0, 1, 7, 100}) {
    Tensor x = zeros({1, 1, 64}, {DType::f64, Device::cpu()});
    fill_(narrow(x, 2, 3, 1), 1);
    auto y = to_vector<double>(rope(x, t.cos, t.sin, i32({position})));
    double expected = static_cast<double>(position) * std::pow(10000.0, -6.0 / 64);
    for (size_t d = 0; d < 64; ++d)
      EXPECT_NEAR(y[d], d == 3 ? std::cos(expected) : d == 35 ? std::sin(expected) : 0, 1e-14) << d;
  }
}

// Views into a fused projection, transposed heads, a step along the head.
TEST(Rope, ReadsStridedRows) {
  auto t = tables(64, 16, DType::f32);
  Tensor base = random_rows(6, 3, 48, DType::f32), positions = i32({0, 9, 1, 63, 5, 5});
  Tensor views[] = {narrow(base, 2, 16, 16), narrow(base, 2, 0, 16, 3), narrow(base, 1, 1, 2, 1),
                    transpose(narrow(base, 0, 0, 3), 0, 1)};
  for (Tensor view : views) {
    if (view.size(2) != 16) view = narrow(view, 2, 8, 16);
    Tensor at = narrow(positions, 0, 0, view.size(0));
    EXPECT_EQ(to_vector<float>(rope(view, t.cos, t.sin, at)),
              to_vector<float>(rope(clone_data(view), t.cos, t.sin, at)));
  }
}

TEST(Rope, TheGradientIsTheInverseRotation) {
  auto t = tables(64, 8);
  Tensor x = random_rows(4, 2, 10, DType::f64), positions = i32({3, 60, 0, 17});
  set_requires_grad(x);
  Tensor y = rope(x, t.cos, t.sin, positions);
  backward(y, detach(y));  // turned forth and back
  auto got = to_vector<double>(grad(x)), expected = to_vector<double>(x);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-14);

  // The second derivative of sum(y^3) along a direction: 6 y times the turned direction, turned back.
  y = rope(x, t.cos, t.sin, positions);
  Tensor first = gradients({y * y * y}, {x}, {ones(y.shape(), {DType::f64, Device::cpu()})}, {.create_graph = true})[0];
  Tensor direction = random_rows(4, 2, 10, DType::f64);
  Tensor second = gradients({first}, {x}, {direction})[0];
  Tensor turned = rope(direction, t.cos, t.sin, positions);
  Tensor want = gradients({rope(x, t.cos, t.sin, positions)}, {x}, {detach(y * turned) * 6.0})[0];
  auto a = to_vector<double>(second), b = to_vector<double>(want);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-12 * (1 + std::abs(b[i])));
}

TEST(Rope, ThreadsDoNotChangeABit) {
  auto t = tables(1024, 64, DType::f32);
  Tensor x = random_rows(1000, 4, 64, DType::f32), positions = clone_data(arange(1000), DType::i32);
  int before = num_threads();
  set_num_threads(1);
  auto one = to_vector<float>(rope(x, t.cos, t.sin, positions));
  set_num_threads(2);
  EXPECT_EQ(to_vector<float>(rope(x, t.cos, t.sin, positions)), one);
  set_num_threads(before);
}

TEST(Rope, ErrorsSayWhatWasExpected) {
  auto t = tables(4, 8);
  Tensor x = zeros({2, 1, 8});
  auto fails = [&](const Tensor& a, const Tensor& positions) {
    return error_of<Error>([&] { rope(a, t.cos, t.sin, positions); });
  };
  EXPECT_EQ(fails(x, i32({0, 4})), "rope: position must be in [0, 4), got 4 in row 1");
  EXPECT_EQ(fails(x, i32({-1, 0})), "rope: position must be in [0, 4), got -1 in row 0");
  EXPECT_EQ(fails(x, i32({0})), "rope: expected 2 positions, got shape [1]");
  EXPECT_EQ(fails(zeros({2, 8}), i32({0, 0})),
            "rope: x must be [rows, heads, head size] of a floating dtype, got f32 [2, 8]");
  EXPECT_EQ(fails(zeros({2, 1, 4}), i32({0, 0})),
            "rope: cos and sin must be [positions, R/2] with R <= 4, got [4, 4] and [4, 4]");
}

}  // namespace
}  // namespace strata
