// Matrix products: squares, and the shapes of a language model of 135M parameters (M rows of x, w [N, K]).
// FLOP/s counts 2 M N K; bytes/s the weight read once, which bounds a decoding step (M = 1).
#include <benchmark/benchmark.h>

#include "autograd/autograd.h"
#include "autograd/ops/copy.h"
#include "autograd/ops/matmul.h"
#include "tensor/random.h"

namespace strata {
namespace {

Tensor random_matrix(int64_t rows, int64_t columns, DType dtype = DType::f32) {
  Generator generator(1);
  return to(randn({rows, columns}, generator), dtype);
}

void count(benchmark::State& state, int64_t M, int64_t N, int64_t K, const Tensor& w) {
  double runs = static_cast<double>(state.iterations());
  double flops = 2.0 * static_cast<double>(M) * static_cast<double>(N) * static_cast<double>(K);
  state.counters["FLOP/s"] = benchmark::Counter(flops * runs, benchmark::Counter::kIsRate);
  state.SetBytesProcessed(state.iterations() * w.bytes());
}

/// y = a b, all square.
void square(benchmark::State& state) {
  NoGrad off;
  int64_t n = state.range(0);
  Tensor a = random_matrix(n, n), b = random_matrix(n, n);
  for (auto _ : state) benchmark::DoNotOptimize(matmul(a, b));
  count(state, n, n, n, b);
}

/// y = x w^T with w in `dtype`.
void run_linear(benchmark::State& state, DType dtype) {
  NoGrad off;
  int64_t M = state.range(0), K = state.range(1), N = state.range(2);
  Tensor x = random_matrix(M, K), w = random_matrix(N, K, dtype);
  for (auto _ : state) benchmark::DoNotOptimize(linear(x, w));
  count(state, M, N, K, w);
}
void linear_f32(benchmark::State& state) {
  run_linear(state, DType::f32);
}
void linear_bf16_weight(benchmark::State& state) {
  run_linear(state, DType::bf16);
}

/// dx = dy w and dw = dy^T x.
void linear_backward(benchmark::State& state) {
  NoGrad off;
  int64_t M = state.range(0), K = state.range(1), N = state.range(2);
  Tensor x = random_matrix(M, K), w = random_matrix(N, K), dy = random_matrix(M, N);
  for (auto _ : state) {
    benchmark::DoNotOptimize(matmul(dy, w));
    benchmark::DoNotOptimize(matmul(transpose(dy), x));
  }
  count(state, 2 * M, N, K, w);
}

/// Forward and backward of a linear layer with a frozen weight and a low-rank term of 16.
void linear_low_rank_step(benchmark::State& state) {
  int64_t M = state.range(0), K = state.range(1), N = state.range(2);
  Tensor x = set_requires_grad(random_matrix(M, K)), w = random_matrix(N, K), dy = random_matrix(M, N);
  Tensor a = set_requires_grad(random_matrix(16, K)), b = set_requires_grad(random_matrix(N, 16));
  for (auto _ : state) benchmark::DoNotOptimize(gradients({linear_low_rank(x, w, {}, a, b, 2.0)}, {x, a, b}, {dy}));
  count(state, 2 * M, N, K, w);
}

void language_model_shapes(benchmark::internal::Benchmark* bench) {
  for (int64_t M : {1, 2, 4, 8, 64, 600})
    for (auto [K, N] : {std::pair<int64_t, int64_t>{576, 576}, {576, 1536}, {1536, 576}, {576, 49152}})
      bench->Args({M, K, N});
  bench->ArgNames({"M", "K", "N"});
}
void training_shapes(benchmark::internal::Benchmark* bench) {
  for (auto [K, N] : {std::pair<int64_t, int64_t>{576, 576}, {576, 1536}, {1536, 576}}) bench->Args({600, K, N});
  bench->ArgNames({"M", "K", "N"});
}

BENCHMARK(square)->RangeMultiplier(2)->Range(64, 2048)->UseRealTime();
BENCHMARK(linear_f32)->Apply(language_model_shapes)->UseRealTime();
BENCHMARK(linear_bf16_weight)->Apply(language_model_shapes)->UseRealTime();
BENCHMARK(linear_backward)->Apply(training_shapes)->UseRealTime();
BENCHMARK(linear_low_rank_step)->Apply(training_shapes)->UseRealTime();

}  // namespace
}  // namespace strata
