// Softmax of [rows, columns]; bytes/s counts x read and y written once.
#include "autograd/ops/softmax.h"

#include <benchmark/benchmark.h>

#include "autograd/autograd.h"
#include "tensor/random.h"

namespace strata {
namespace {

void run(benchmark::State& state, Tensor (*op)(const Tensor&, int64_t)) {
  NoGrad off;
  Generator generator(1);
  Tensor x = randn({state.range(0), state.range(1)}, generator);
  for (auto _ : state) benchmark::DoNotOptimize(op(x, -1));
  state.SetBytesProcessed(state.iterations() * 2 * x.bytes());
}
void softmax_forward(benchmark::State& state) {
  run(state, softmax);
}
void log_softmax_forward(benchmark::State& state) {
  run(state, log_softmax);
}

void softmax_backward(benchmark::State& state) {
  Generator generator(1);
  Tensor x = set_requires_grad(randn({state.range(0), state.range(1)}, generator)), dy = randn(x.shape(), generator);
  Tensor y = softmax(x);
  for (auto _ : state) benchmark::DoNotOptimize(gradients({y}, {x}, {dy}, {.retain_graph = true}));
  state.SetBytesProcessed(state.iterations() * 3 * x.bytes());
}

BENCHMARK(softmax_forward)->Args({4096, 256})->Args({64, 49152})->UseRealTime();
BENCHMARK(log_softmax_forward)->Args({4096, 256})->Args({64, 49152})->UseRealTime();
BENCHMARK(softmax_backward)->Args({4096, 256})->Args({64, 49152})->UseRealTime();

}  // namespace
}  // namespace strata
