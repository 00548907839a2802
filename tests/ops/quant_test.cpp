#include "autograd/ops/quant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/ops/copy.h"
#include "autograd/ops/cross_entropy.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/reduce.h"
#include "tensor/allocator.h"
#include "tensor/create.h"
#include "tensor/io/safetensors.h"
#include "tensor/kernels/quant_blocks.h"
#include "tensor/parallel.h"
#include "tensor/random.h"
#include "tests/temporary_folder.h"

namespace strata {
namespace {

using test::error_of;
using testing::HasSubstr;

constexpr QuantType kTypes[] = {QuantType::q4_0, QuantType::q4_1, QuantType::q5_0, QuantType::q5_1,
                                QuantType::q8_0, QuantType::q4_k, QuantType::q5_k, QuantType::q6_k};

SafetensorsFile golden() {
  return SafetensorsFile::open(std::string(STRATA_SOURCE_DIR) + "/tests/golden/quant_blocks.safetensors");
}

QuantizedWeight golden_weight(QuantType type) {
  Tensor packed = golden().tensor(std::string(quant_type_name(type)) + ".packed");
  return {type, packed.size(0), packed.size(1) / quant_block_bytes(type) * quant_block_values(type), packed};
}

// A weight with random bits and sane scales.
QuantizedWeight random_weight(QuantType type, int64_t rows, int64_t columns, uint64_t seed = 1) {
  if (type <= QuantType::q8_0) {
    Generator generator(seed);
    return quantize(randn({rows, columns}, generator), type);
  }
  QuantizedWeight source = golden_weight(type);
  int64_t row_bytes = columns / 256 * quant_block_bytes(type);
  QuantizedWeight w{type, rows, columns, empty({rows, row_bytes}, {DType::u8, Device::cpu()})};
  const uint8_t* from = source.bytes.data<uint8_t>();
  uint8_t* to = w.bytes.mutable_data<uint8_t>();
  for (int64_t b = 0; b < rows * columns / 256; ++b) {  // blocks 1..3 have random scales
    int64_t block = 1 + (b * 7 + static_cast<int64_t>(seed)) % 3;
    std::memcpy(to + b * quant_block_bytes(type), from + block * quant_block_bytes(type),
                static_cast<size_t>(quant_block_bytes(type)));
    to[b * quant_block_bytes(type) + 20] = static_cast<uint8_t>(b * 37 + static_cast<int64_t>(seed));
  }
  return w;
}

Tensor random(const Dims& shape, uint64_t seed = 2) {
  Generator generator(seed);
  return randn(shape, generator);
}

void expect_near(const Tensor& got, const Tensor& expected, double tolerance) {
  ASSERT_EQ(got.shape(), expected.shape());
  auto a = to_vector<double>(got), b = to_vector<double>(expected);
  double size = 1e-6;
  for (double x : b) size = std::max(size, std::abs(x));
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance * size) << "element " << i;
}

class Quant : public testing::TestWithParam<QuantType> {
 protected:
  void SetUp() override { allocator::set_poison(true); }
  void TearDown() override { allocator::set_poison(false); }
};

TEST_P(Quant, DequantisedValuesAreThoseOfGguf) {
  QuantizedWeight w = golden_weight(GetParam());
  Tensor expected = golden().tensor(std::string(quant_type_name(GetParam())) + ".values");
  EXPECT_EQ(to_vector<float>(dequantize(w)), to_vector<float>(expected));
  // The portable form, which a machine without AVX2 runs.
  auto values = to_vector<float>(expected);
  quant::with_block(GetParam(), [&]<class Block>() {
    const uint8_t* packed = w.bytes.data<uint8_t>();
    for (size_t at = 0; at < values.size(); at += 32) {
      float part[32];
      auto block = static_cast<int64_t>(at) / Block::values;
      Block::unpack(packed + block * Block::bytes, static_cast<int>(at) % Block::values / 32, part);
      for (size_t i = 0; i < 32; ++i) ASSERT_EQ(part[i], values[at + i]) << at + i;
    }
  });
}

TEST_P(Quant, PackedBytesAreThoseOfGguf) {
  if (GetParam() > QuantType::q8_0) {
    EXPECT_THAT(error_of<Error>([&] {
                  quantize(zeros({1, 256}), GetParam());
                }),
                HasSubstr("only types with blocks of 32 can be written"));
    return;
  }
  Tensor rows = golden().tensor("rows");
  QuantizedWeight w = quantize(rows, GetParam());
  Tensor expected = golden().tensor(std::string(quant_type_name(GetParam())) + ".rows");
  EXPECT_EQ(w.rows, 6);
  EXPECT_EQ(w.columns, 64);
  EXPECT_EQ(to_vector<uint8_t>(w.bytes), to_vector<uint8_t>(expected));
  EXPECT_EQ(w.bytes.storage()->kind(), MemoryKind::quantized);
}

TEST_P(Quant, RowsAndRangesOfRows) {
  QuantizedWeight w = random_weight(GetParam(), 70, 512);
  Tensor all = dequantize(w);
  Tensor part = empty({5, 512});
  kernels::dequantize(Device::cpu(), w, 63, part);
  EXPECT_EQ(to_vector<float>(part), to_vector<float>(narrow(all, 0, 63, 5)));
  for (DType dtype : {DType::i64, DType::i32}) {
    Tensor ids = clone_data(from_values<int64_t>({69, 0, 69, 13, 7, 1}, {2, 3}), dtype);
    Tensor y = quantized_embedding(w, ids);
    EXPECT_EQ(y.shape(), (Dims{2, 3, 512}));
    EXPECT_EQ(to_vector<float>(select(select(y, 0, 0), 0, 2)), to_vector<float>(select(all, 0, 69)));
    EXPECT_EQ(to_vector<float>(select(select(y, 0, 1), 0, 0)), to_vector<float>(select(all, 0, 13)));
  }
}

// Few rows of x straight from the packed form, many by panels: both are x times the dequantised weight.
TEST_P(Quant, LinearEqualsTheProductWithTheDequantisedWeight) {
  QuantizedWeight w = random_weight(GetParam(), 131, 512);
  Tensor values = clone_data(dequantize(w), DType::f64), bias = random({131}, 9);
  for (int64_t M : {1, 2, 3, 4, 5, 7, 8, 16, 33, 100}) {
    Tensor x = random({M, 512});
    Tensor expected = linear(clone_data(x, DType::f64), values, clone_data(bias, DType::f64));
    expect_near(quantized_linear(x, w, bias), expected, 2e-6);
    expect_near(quantized_linear(reshape(x, {1, M, 512}), w),
                reshape(linear(clone_data(x, DType::f64), values), {1, M, 131}), 2e-6);
  }
}

TEST_P(Quant, ARowOfFewHasTheSameBitsInAnyCompany) {
  QuantizedWeight w = random_weight(GetParam(), 203, 768);
  Tensor x = random({16, 768}), y = empty({16, 203});
  int before = num_threads();
  set_num_threads(1);
  kernels::quantized_matmul(Device::cpu(), x, w, y);
  for (int threads : {1, 2, 3}) {
    set_num_threads(threads);
    for (int64_t M : {1, 2, 3, 4, 6, 16}) {
      Tensor part = empty({M, 203});
      kernels::quantized_matmul(Device::cpu(), narrow(x, 0, 16 - M, M), w, part);
      EXPECT_EQ(to_vector<float>(part), to_vector<float>(narrow(y, 0, 16 - M, M))) << M << " rows, " << threads;
    }
  }
  set_num_threads(before);
}

TEST_P(Quant, GradientOfXIsTheProductWithTheWeight) {
  QuantizedWeight w = random_weight(GetParam(), 97, 512);
  Tensor values = dequantize(w);
  for (int64_t M : {3, 60}) {
    Tensor x = random({M, 512}), dy = random({M, 97}, 4), b = random({97}, 5);
    set_requires_grad(x);
    set_requires_grad(b);
    backward(quantized_linear(x, w, b), dy);
    expect_near(grad(x), matmul(clone_data(dy, DType::f64), clone_data(values, DType::f64)), 2e-6);
    expect_near(grad(b), sum(clone_data(dy, DType::f64), {0}), 2e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Quant, testing::ValuesIn(kTypes),
                         [](const auto& type) { return std::string(quant_type_name(type.param)); });

TEST(QuantizedLinear, KeepsTheDtypeOfX) {
  QuantizedWeight w = random_weight(QuantType::q4_1, 40, 96);
  Tensor values = clone_data(dequantize(w), DType::f64);
  for (int64_t M : {2, 50})
    for (auto [dtype, tolerance] : {std::pair{DType::f64, 1e-13}, {DType::f16, 1e-3}, {DType::bf16, 8e-3}}) {
      Tensor x = clone_data(random({M, 96}), dtype);
      set_requires_grad(x);
      Tensor y = quantized_linear(x, w), dy = clone_data(random({M, 40}, 4), dtype);
      EXPECT_EQ(y.dtype(), dtype);
      expect_near(detach(y), matmul(clone_data(x, DType::f64), transpose(values)), tolerance);
      backward(y, dy);
      EXPECT_EQ(grad(x).dtype(), dtype);
      expect_near(grad(x), matmul(clone_data(dy, DType::f64), values), tolerance);
    }
}

// Linear in x: the derivative of the gradient along dy is the forward product again.
TEST(QuantizedLinear, SecondDerivatives) {
  QuantizedWeight w = random_weight(QuantType::q8_0, 24, 64);
  Tensor x = random({3, 64}), dy = random({3, 24}, 4);
  set_requires_grad(x);
  set_requires_grad(dy);
  Tensor dx = gradients({quantized_linear(x, w)}, {x}, {dy}, {.create_graph = true})[0];
  Tensor direction = random({3, 64}, 6);
  expect_near(gradients({dx}, {dy}, {direction})[0], quantized_linear(direction, w), 1e-6);
}

TEST(QuantizedLinear, KeepsNoCopyOfTheWeight) {
  QuantizedWeight w = random_weight(QuantType::q4_0, 512, 512);
  Tensor x = random({40, 512});
  set_requires_grad(x);
  int64_t before = ledger::current().total();
  Tensor y = quantized_linear(x, w);
  EXPECT_LE(ledger::current().total() - before, y.bytes() + 4096);
}

TEST(QuantizedLinear, StridedInputs) {
  QuantizedWeight w = random_weight(QuantType::q4_1, 30, 64);
  for (int64_t M : {4, 70}) {
    Tensor wide = random({M, 200}), x = narrow(wide, 1, 100, 64), step = narrow(wide, 1, 0, 64, 3);
    EXPECT_EQ(to_vector<float>(quantized_linear(x, w)), to_vector<float>(quantized_linear(clone_data(x), w)));
    EXPECT_EQ(to_vector<float>(quantized_linear(step, w)), to_vector<float>(quantized_linear(clone_data(step), w)));
    Tensor t = transpose(random({64, M}));
    EXPECT_EQ(to_vector<float>(quantized_linear(t, w)), to_vector<float>(quantized_linear(clone_data(t), w)));
  }
}

TEST(QuantizedLinear, ThreadsDoNotChangeABit) {
  QuantizedWeight w = random_weight(QuantType::q4_1, 700, 576);
  int before = num_threads();
  for (int64_t M : {1, 5, 64}) {
    Tensor x = random({M, 576});
    set_num_threads(1);
    auto one = to_vector<float>(quantized_linear(x, w));
    set_num_threads(2);
    EXPECT_EQ(to_vector<float>(quantized_linear(x, w)), one) << M;
  }
  set_num_threads(before);
}

TEST(QuantizedLinear, EmptyInputs) {
  QuantizedWeight w = random_weight(QuantType::q4_1, 30, 64);
  Tensor x = zeros({0, 64});
  set_requires_grad(x);
  Tensor y = quantized_linear(x, w);
  EXPECT_EQ(y.shape(), (Dims{0, 30}));
  backward(y, zeros({0, 30}));
  EXPECT_EQ(grad(x).shape(), (Dims{0, 64}));
  EXPECT_EQ(quantized_embedding(w, zeros({0}, {DType::i64, Device::cpu()})).shape(), (Dims{0, 64}));
}

TEST(QuantizedCrossEntropy, EqualsThatOfTheDequantisedWeight) {
  QuantizedWeight w = random_weight(QuantType::q8_0, 300, 64);
  Tensor x = random({20, 64}),
         targets = from_values<int64_t>(
             {5, -100, 299, 0, 17, -100, -100, 3, 8, 1, 2, 299, 298, 4, -100, 100, 150, 200, 250, 7}, {20});
  Tensor y = clone_data(x);
  set_requires_grad(x);
  set_requires_grad(y);
  Tensor loss = quantized_linear_cross_entropy(x, w, targets);
  Tensor expected = linear_cross_entropy(y, dequantize(w), targets);
  EXPECT_NEAR(loss.item(), expected.item(), 1e-5 * expected.item());
  backward(loss);
  backward(expected);
  expect_near(grad(x), grad(y), 1e-5);
}

TEST(QuantErrors, SayWhatWasExpected) {
  QuantizedWeight w = random_weight(QuantType::q4_1, 30, 64);
  auto fails = [](auto&& f) { return error_of<Error>(f); };
  EXPECT_EQ(fails([&] {
              quantized_linear(zeros({2, 32}), w);
            }),
            "quantized_linear: inner dimensions differ, got x [2, 32] and w [30, 64]");
  EXPECT_EQ(fails([&] {
              quantized_linear(zeros({2, 64}), w, zeros({64}));
            }),
            "quantized_linear: bias must be [30], got [64]");
  EXPECT_EQ(fails([&] {
              quantized_embedding(w, from_values<int64_t>({3, 30}, {2}));
            }),
            "quantized_embedding: id must be in [0, 30), got 30 at position 1");
  EXPECT_EQ(fails([&] {
              quantize(zeros({2, 40}), QuantType::q4_0);
            }),
            "quantize: columns must be a multiple of 32, got shape [2, 40]");
  Tensor bad = zeros({2, 64});
  fill_(narrow(narrow(bad, 0, 1, 1), 1, 33, 1), std::numeric_limits<double>::infinity());
  EXPECT_EQ(fails([&] { quantize(bad, QuantType::q8_0); }),
            "quantize: values must be finite and within 65504, got inf in row 1, column 33");
  QuantizedWeight broken = w;
  broken.columns = 96;
  EXPECT_THAT(fails([&] {
                quantized_linear(zeros({2, 96}), broken);
              }),
              HasSubstr("quantized_linear: Q4_1 [30, 96] needs u8 [30, 60], got u8 [30, 40]"));
}

}  // namespace
}  // namespace strata
