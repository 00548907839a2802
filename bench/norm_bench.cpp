// RMSNorm and LayerNorm of [rows, C]; bytes/s counts each [rows, C] tensor read or written once.
#include "autograd/ops/norm.h"

#include <benchmark/benchmark.h>

#include "autograd/autograd.h"
#include "tensor/random.h"

namespace strata {
namespace {

struct Operands {
  Tensor x, w, b, dy;
  explicit Operands(benchmark::State& state) {
    Generator generator(1);
    x = set_requires_grad(randn({state.range(0), state.range(1)}, generator));
    w = set_requires_grad(randn({state.range(1)}, generator));
    b = set_requires_grad(randn({state.range(1)}, generator));
    dy = randn(x.shape(), generator);
  }
};

void rms_norm_forward(benchmark::State& state) {
  NoGrad off;
  Operands o(state);
  for (auto _ : state) benchmark::DoNotOptimize(rms_norm(o.x, o.w));
  state.SetBytesProcessed(state.iterations() * 2 * o.x.bytes());
}

void rms_norm_backward(benchmark::State& state) {
  Operands o(state);
  Tensor y = rms_norm(o.x, o.w);
  for (auto _ : state) benchmark::DoNotOptimize(gradients({y}, {o.x, o.w}, {o.dy}, {.retain_graph = true}));
  state.SetBytesProcessed(state.iterations() * 3 * o.x.bytes());
}

void layer_norm_forward(benchmark::State& state) {
  NoGrad off;
  Operands o(state);
  for (auto _ : state) benchmark::DoNotOptimize(layer_norm(o.x, o.w, o.b));
  state.SetBytesProcessed(state.iterations() * 2 * o.x.bytes());
}

void layer_norm_backward(benchmark::State& state) {
  Operands o(state);
  Tensor y = layer_norm(o.x, o.w, o.b);
  for (auto _ : state) benchmark::DoNotOptimize(gradients({y}, {o.x, o.w, o.b}, {o.dy}, {.retain_graph = true}));
  state.SetBytesProcessed(state.iterations() * 3 * o.x.bytes());
}

BENCHMARK(rms_norm_forward)->Args({1, 576})->Args({600, 576})->Args({2048, 4096})->UseRealTime();
BENCHMARK(rms_norm_backward)->Args({600, 576})->Args({2048, 4096})->UseRealTime();
BENCHMARK(layer_norm_forward)->Args({600, 576})->Args({2048, 4096})->UseRealTime();
BENCHMARK(layer_norm_backward)->Args({600, 576})->Args({2048, 4096})->UseRealTime();

}  // namespace
}  // namespace strata
