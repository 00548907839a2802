#include "autograd/ops/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/ops/copy.h"
#include "tensor/allocator.h"
#include "tensor/create.h"
#include "tensor/parallel.h"
#include "tensor/random.h"
#include "tests/reference/attention.h"
#include "tests/temporary_folder.h"

namespace strata {
namespace {

using test::error_of;
using testing::HasSubstr;

struct Case {
  std::string name;
  std::vector<int64_t> T, S;  // queries and keys of each sequence
  int64_t H = 2, Hk = 1, D = 16;
  AttentionOptions options = {};
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

struct Inputs {
  Tensor q, k, v, dy;
  Ragged queries, keys;
};

// Deterministic values; rows of no sequence stand before, between and after.
Inputs inputs_of(const Case& c, DType dtype) {
  Inputs in;
  auto lay = [](const std::vector<int64_t>& lengths, int64_t gap) {
    Ragged r;
    int64_t at = gap;
    for (int64_t n : lengths) {
      r.start.push_back(at);
      r.length.push_back(n);
      at += n + gap;
    }
    return std::pair(r, at);
  };
  auto [queries, N] = lay(c.T, 1);
  auto [keys, M] = lay(c.S, 2);
  in.queries = queries;
  in.keys = keys;
  Generator generator(7);
  auto values = [&](const Dims& shape) {
    Tensor t = empty(shape, {DType::f32, Device::cpu()});
    normal_(t, 0, 1, generator);
    return clone_data(t, dtype);
  };
  in.q = values({N, c.H, c.D});
  in.k = values({M, c.Hk, c.D});
  in.v = values({M, c.Hk, c.D});
  in.dy = values({N, c.H, c.D});
  return in;
}

struct Results {
  Tensor y, dq, dk, dv;
};

Results run(const Inputs& in, const AttentionOptions& options) {
  Tensor q = clone_data(in.q), k = clone_data(in.k), v = clone_data(in.v);
  for (const Tensor& t : {q, k, v}) set_requires_grad(t);
  Tensor y = attention(q, k, v, in.queries, in.keys, options);
  backward(y, in.dy);
  return {detach(y), grad(q), grad(k), grad(v)};
}

reference::Array array_of(const Tensor& t) {
  return {t.shape(), to_vector<double>(t)};
}

// Errors are judged against the size of what is compared, at least that of the inputs (about 1): sums of terms cancel.
void expect_near(const Tensor& got, const reference::Array& expected, double tolerance, const char* what) {
  auto values = to_vector<double>(got);
  double size = 1;
  for (double x : expected.values) size = std::max(size, std::abs(x));
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(values[i], expected.values[i], tolerance * size)
        << what << " at " << to_string(expected.index(static_cast<int64_t>(i)));
}

void expect_same(const Tensor& a, const Tensor& b, const char* what) {
  EXPECT_EQ(to_vector<double>(a), to_vector<double>(b)) << what;
}

class AttentionCase : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override { allocator::set_poison(true); }
  void TearDown() override { allocator::set_poison(false); }
};

TEST_P(AttentionCase, EqualsTheDefinitionForwardAndBackward) {
  struct Type {
    DType dtype;
    double forward, gradient;
  };
  for (Type type : {Type{DType::f64, 1e-13, 1e-12}, Type{DType::f32, 2e-6, 1e-5}, Type{DType::f16, 1e-3, 5e-3},
                    Type{DType::bf16, 8e-3, 4e-2}}) {
    Inputs in = inputs_of(GetParam(), type.dtype);
    Results got = run(in, GetParam().options);
    auto expected = reference::attention(array_of(in.q), array_of(in.k), array_of(in.v), array_of(in.dy), in.queries,
                                         in.keys, GetParam().options);
    SCOPED_TRACE(dtype_name(type.dtype));
    expect_near(got.y, expected.y, type.forward, "y");
    expect_near(got.dq, expected.dq, type.gradient, "dq");
    expect_near(got.dk, expected.dk, type.gradient, "dk");
    expect_near(got.dv, expected.dv, type.gradient, "dv");
  }
}

TEST_P(AttentionCase, ThreadsDoNotChangeABit) {
  Inputs in = inputs_of(GetParam(), DType::f32);
  int before = num_threads();
  set_num_threads(1);
  Results one = run(in, GetParam().options);
  for (int threads : {2, 3}) {
    set_num_threads(threads);
    Results more = run(in, GetParam().options);
    expect_same(one.y, more.y, "y");
    expect_same(one.dq, more.dq, "dq");
    expect_same(one.dk, more.dk, "dk");
    expect_same(one.dv, more.dv, "dv");
  }
  set_num_threads(before);
}

// Central differences along random directions, f64: the reference's derivative is checked here, and ours once more.
TEST_P(AttentionCase, GradientsMatchDifferences) {
  Inputs in = inputs_of(GetParam(), DType::f64);
  Results got = run(in, GetParam().options);
  auto value = [&](const Tensor& q, const Tensor& k, const Tensor& v) {
    auto y = to_vector<double>(attention(q, k, v, in.queries, in.keys, GetParam().options));
    auto dy = to_vector<double>(in.dy);
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
    return sum;
  };
  Generator generator(3);
  const Tensor* points[] = {&in.q, &in.k, &in.v};
  const Tensor* gradients[] = {&got.dq, &got.dk, &got.dv};
  for (int which = 0; which < 3; ++which) {
    Tensor direction = empty_like(*points[which]);
    normal_(direction, 0, 1, generator);
    auto u = to_vector<double>(direction), g = to_vector<double>(*gradients[which]);
    auto moved = [&](double step) {
      auto x = to_vector<double>(*points[which]);
      for (size_t i = 0; i < x.size(); ++i) x[i] += step * u[i];
      Tensor t = from_values(x, points[which]->shape());
      return value(which == 0 ? t : in.q, which == 1 ? t : in.k, which == 2 ? t : in.v);
    };
    double expected = 0, size = 1;
    for (size_t i = 0; i < g.size(); ++i) {
      expected += g[i] * u[i];
      size += std::abs(g[i] * u[i]);
    }
    EXPECT_NEAR((moved(1e-5) - moved(-1e-5)) / 2e-5, expected, 1e-8 * size) << "input " << which;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, AttentionCase,
    testing::Values(Case{"one_token", {1}, {1}},                                                     //
                    Case{"short", {5}, {5}, 4, 2, 8},                                                //
                    Case{"few_to_many", {8, 9}, {8, 9}, 3, 1, 24},                                   //
                    Case{"tiles", {48, 64}, {48, 64}, 2, 2, 16},                                     //
                    Case{"beyond_a_tile", {49, 65, 131}, {49, 65, 131}, 6, 2, 20},                   //
                    Case{"decode", {1, 1, 1}, {1, 129, 300}, 6, 3, 64},                              //
                    Case{"continued", {3, 50}, {140, 200}, 4, 1, 32},                                //
                    Case{"no_key_for_some", {6, 70, 1, 3}, {2, 10, 0, 0}, 2, 1, 16},                 //
                    Case{"empty_sequences", {0, 5, 0}, {4, 5, 0}, 2, 1, 16},                         //
                    Case{"not_causal", {5, 60}, {70, 130}, 2, 1, 16, {.causal = false}},             //
                    Case{"window", {100, 4}, {100, 150}, 2, 1, 16, {.window = 17}},                  //
                    Case{"window_of_one", {70}, {70}, 2, 1, 16, {.window = 1}},                      //
                    Case{"window_not_causal", {9}, {80}, 2, 1, 16, {.causal = false, .window = 3}},  //
                    Case{"softcap", {70, 3}, {70, 20}, 2, 1, 16, {.scale = 2.0, .softcap = 1.5}},    //
                    Case{"everything", {90}, {120}, 4, 2, 40, {.scale = 0.3, .window = 70, .softcap = 4}}),
    [](const auto& c) { return c.param.name; });

// p by one-hot values: y is the row of probabilities.
std::vector<double> probabilities(const Tensor& q, const Tensor& k, const AttentionOptions& options, int64_t query) {
  int64_t T = q.size(0), S = k.size(0);
  Tensor v = reshape(eye(S, {q.dtype(), Device::cpu()}), {S, 1, S});
  auto pad = [&](const Tensor& x) {  // to head size S
    Tensor y = zeros({x.size(0), 1, S}, {x.dtype(), Device::cpu()});
    copy_(narrow(y, 2, 0, x.size(2)), x);
    return y;
  };
  auto y = to_vector<double>(attention(pad(q), pad(k), v, Ragged::packed({T}), Ragged::packed({S}), options));
  return {y.begin() + query * S, y.begin() + (query + 1) * S};
}

TEST(Attention, AWindowOfFourSeesItselfAndThreeBefore) {
  for (int64_t T : {6, 60}) {  // both kernels
    Tensor q = zeros({T, 1, 1}), k = zeros({T, 1, 1});
    auto p = probabilities(q, k, {.window = 4}, 5);
    for (int64_t j = 0; j < T; ++j) EXPECT_NEAR(p[static_cast<size_t>(j)], j >= 2 && j <= 5 ? 0.25 : 0, 1e-7) << j;
    EXPECT_EQ(probabilities(q, k, {.window = T}, T - 1), probabilities(q, k, {}, T - 1));
  }
}

TEST(Attention, SoftcapComesBeforeTheMask) {
  for (int64_t T : {2, 60}) {
    // Query 1 scores 100 with key 0 and 90 with key 1: capped at 50, 48.2014 and 47.3403; uncapped 100 and 90.
    std::vector<double> q(static_cast<size_t>(T), 10),
        k(static_cast<size_t>(T), 1e4);  // hidden keys would score far more
    k[0] = 10;
    k[1] = 9;
    auto qt = from_values(q, {T, 1, 1}), kt = from_values(k, {T, 1, 1});
    auto p = probabilities(qt, kt, {.scale = 1, .softcap = 50}, 1);
    EXPECT_NEAR(std::log(p[0] / p[1]), 48.2014 - 47.3403, 1e-4);
    for (int64_t j = 2; j < T; ++j) EXPECT_EQ(p[static_cast<size_t>(j)], 0);
    p = probabilities(qt, kt, {.scale = 1}, 1);
    EXPECT_NEAR(std::log(p[0] / p[1]), 10, 1e-9);
  }
}

// A batch is nothing but its sequences: same bits alone and together.
TEST(Attention, SequencesInABatchEqualThemselvesAlone) {
  Case c{"", {70, 1, 8, 130}, {70, 200, 30, 130}, 4, 2, 32, {.window = 90}};
  Inputs all = inputs_of(c, DType::f32);
  Results together = run(all, c.options);
  for (size_t s = 0; s < c.T.size(); ++s) {
    Inputs one{narrow(all.q, 0, all.queries.start[s], c.T[s]),
               narrow(all.k, 0, all.keys.start[s], c.S[s]),
               narrow(all.v, 0, all.keys.start[s], c.S[s]),
               narrow(all.dy, 0, all.queries.start[s], c.T[s]),
               Ragged::packed({c.T[s]}),
               Ragged::packed({c.S[s]})};
    Results alone = run(one, c.options);
    expect_same(alone.y, narrow(together.y, 0, all.queries.start[s], c.T[s]), "y");
    expect_same(alone.dq, narrow(together.dq, 0, all.queries.start[s], c.T[s]), "dq");
    expect_same(alone.dk, narrow(together.dk, 0, all.keys.start[s], c.S[s]), "dk");
    expect_same(alone.dv, narrow(together.dv, 0, all.keys.start[s], c.S[s]), "dv");
  }
}

TEST(Attention, AChangedTokenOfOneSequenceChangesNoOther) {
  Case c{"", {20, 60}, {20, 60}, 4, 2, 16, {}};
  Inputs in = inputs_of(c, DType::f32);
  Tensor before = run(in, c.options).y;
  for (const Tensor& t : {in.q, in.k, in.v}) fill_(narrow(t, 0, in.keys.start[0] + 3, 1), 5);
  Tensor after = run(in, c.options).y;
  auto a = narrow(before, 0, in.queries.start[1], 60), b = narrow(after, 0, in.queries.start[1], 60);
  expect_same(a, b, "the other sequence");
  EXPECT_NE(to_vector<float>(before), to_vector<float>(after));
}

// One token at a time over a growing cache, in pieces, and all at once.
TEST(Attention, DecodingFromACacheEqualsTheWholePrompt) {
  Case c{"", {150}, {150}, 6, 2, 64, {.window = 140}};
  Inputs in = inputs_of(c, DType::f32);
  Tensor q = narrow(in.q, 0, 1, 150), whole = narrow(run(in, c.options).y, 0, 1, 150);
  auto piecewise = [&](int64_t piece) {
    Tensor y = zeros(q.shape());
    for (int64_t t = 0; t < 150; t += piece) {
      int64_t n = std::min(piece, 150 - t);
      Ragged cached{{in.keys.start[0]}, {t + n}};
      copy_(narrow(y, 0, t, n), attention(narrow(q, 0, t, n), in.k, in.v, Ragged::packed({n}), cached, c.options));
    }
    return y;
  };
  Tensor single = piecewise(1);
  expect_near(single, array_of(whole), 2e-6, "one by one");
  expect_same(single, piecewise(5), "in pieces of 5");
  expect_near(piecewise(64), array_of(whole), 2e-6, "in pieces of 64");
}

TEST(Attention, ReadsViewsIntoAFusedProjection) {
  int64_t N = 60, H = 4, Hk = 2, D = 16;
  Generator generator(1);
  Tensor qkv = empty({N, (H + 2 * Hk) * D});
  normal_(qkv, 0, 1, generator);
  set_requires_grad(qkv);
  auto head_view = [&](int64_t first, int64_t heads) {
    return reshape(narrow(qkv, 1, first * D, heads * D), {N, heads, D});
  };
  Tensor q = head_view(0, H), k = head_view(H, Hk), v = head_view(H + Hk, Hk);
  Ragged rows = Ragged::packed({20, 40});
  Tensor y = attention(q, k, v, rows, rows);
  backward(y, ones(y.shape()));
  Inputs copies{clone_data(q), clone_data(k), clone_data(v), ones(y.shape()), rows, rows};
  Results expected = run(copies, {});
  expect_same(y, expected.y, "y");
  expect_same(narrow(grad(qkv), 1, 0, H * D), reshape(expected.dq, {N, H * D}), "dq");
  expect_same(narrow(grad(qkv), 1, H * D, Hk * D), reshape(expected.dk, {N, Hk * D}), "dk");
  expect_same(narrow(grad(qkv), 1, (H + Hk) * D, Hk * D), reshape(expected.dv, {N, Hk * D}), "dv");

  Tensor transposed = transpose(empty({D, H, N}), 0, 2);  // no unit stride along the head
  copy_(transposed, copies.q);
  expect_same(attention(transposed, copies.k, copies.v, rows, rows), expected.y, "transposed q");
}

TEST(Attention, OnlyWantedGradientsAreComputed) {
  Case c{"", {60}, {60}, 2, 1, 16, {}};
  Inputs in = inputs_of(c, DType::f32);
  Results all = run(in, {});
  for (int wanted = 0; wanted < 3; ++wanted) {
    Tensor inputs[] = {clone_data(in.q), clone_data(in.k), clone_data(in.v)};
    set_requires_grad(inputs[wanted]);
    backward(attention(inputs[0], inputs[1], inputs[2], in.queries, in.keys), in.dy);
    expect_same(grad(inputs[wanted]), wanted == 0 ? all.dq : wanted == 1 ? all.dk : all.dv, "gradient");
  }
}

TEST(Attention, SequencesMayShareKeysWithoutGradients) {
  Case c{"", {1, 1}, {40, 40}, 2, 1, 16, {}};
  Inputs in = inputs_of(c, DType::f32);
  in.keys = Ragged{{0, 0}, {40, 40}};
  auto expected =
      reference::attention(array_of(in.q), array_of(in.k), array_of(in.v), array_of(in.dy), in.queries, in.keys, {});
  expect_near(attention(in.q, in.k, in.v, in.queries, in.keys), expected.y, 2e-6, "y");
  set_requires_grad(in.k);
  EXPECT_THAT(error_of<Error>([&] { attention(in.q, in.k, in.v, in.queries, in.keys); }),
              HasSubstr("attention: keys of two sequences overlap"));
}

TEST(Attention, NotANumberIsNotSwallowed) {
  for (int64_t T : {3, 60}) {
    Case c{"", {T}, {T}, 1, 1, 16, {}};
    Inputs in = inputs_of(c, DType::f32);
    fill_(narrow(in.q, 0, in.queries.start[0] + T - 1, 1), std::numeric_limits<double>::quiet_NaN());
    auto y = to_vector<float>(attention(in.q, in.k, in.v, in.queries, in.keys));
    auto last = static_cast<size_t>((in.queries.start[0] + T - 1) * 16);
    EXPECT_TRUE(std::isnan(y[last])) << T;
    EXPECT_FALSE(std::isnan(y[last - 1])) << T;
  }
}

TEST(Attention, ErrorsSayWhatWasExpected) {
  auto make = [](int64_t n, int64_t h, int64_t d, DType dtype = DType::f32) {
    return zeros({n, h, d}, {dtype, Device::cpu()});
  };
  auto fails = [&](const Tensor& q, const Tensor& k, const Tensor& v, Ragged queries, Ragged keys,
                   AttentionOptions options = {}) {
    return error_of<Error>([&] { attention(q, k, v, queries, keys, options); });
  };
  Ragged four = Ragged::packed({4}), two = Ragged::packed({2, 2});
  Tensor x = make(4, 2, 8);
  EXPECT_EQ(fails(make(4, 3, 8), x, x, four, four),
            "attention: query heads must be a multiple of key heads, got 3 and 2");
  EXPECT_EQ(fails(make(4, 2, 4), x, x, four, four), "attention: head sizes differ, got q [4, 2, 4] and k [4, 2, 8]");
  EXPECT_EQ(fails(x, x, make(4, 1, 8), four, four),
            "attention: k and v must have one shape, got [4, 2, 8] and [4, 1, 8]");
  EXPECT_EQ(fails(x, make(4, 2, 8, DType::f16), make(4, 2, 8, DType::f16), four, four),
            "attention: q, k, v must have one floating dtype, got f32, f16, f16");
  EXPECT_EQ(fails(x, x, x, four, two), "attention: queries and keys must list the same sequences, got 1 and 2");
  EXPECT_EQ(fails(x, x, x, Ragged::packed({5}), four),
            "attention: queries of sequence 0 must lie within 4 rows, got start 0, length 5");
  EXPECT_EQ(fails(x, x, x, four, Ragged{{INT64_MAX}, {4}}),
            "attention: keys of sequence 0 must lie within 4 rows, got start 9223372036854775807, length 4");
  EXPECT_EQ(fails(x, x, x, Ragged{{0, 1}, {2, 2}}, two), "attention: queries of two sequences must not overlap");
  EXPECT_EQ(fails(x, x, x, four, four, {.window = -1}),
            "attention: window, softcap and scale must not be negative, got -1, 0, 0");
}

TEST(Attention, RefusesSecondDerivatives) {
  Tensor q = ones({2, 1, 8});
  set_requires_grad(q);
  Ragged rows = Ragged::packed({2});
  Tensor y = attention(q, q, q, rows, rows);
  EXPECT_THAT(error_of<Error>([&] { gradients({y}, {q}, {ones(y.shape())}, {.create_graph = true}); }),
              HasSubstr("attention: has no second derivative"));
}

}  // namespace
}  // namespace strata
