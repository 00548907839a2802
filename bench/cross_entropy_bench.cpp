// Cross entropy over a vocabulary of 49152: on whole logits, and with the head's product in chunks.
#include "autograd/ops/cross_entropy.h"

#include <benchmark/benchmark.h>

#include "autograd/autograd.h"
#include "autograd/ops/matmul.h"
#include "tensor/create.h"
#include "tensor/random.h"

namespace strata {
namespace {

constexpr int64_t kVocabulary = 49152, kWidth = 576;

/// The first part of the rows is ignored, as prompts are.
Tensor targets(int64_t rows, int64_t ignored_percent) {
  Tensor t = zeros({rows}, {DType::i64});
  for (int64_t r = 0; r < rows; ++r)
    t.mutable_data<int64_t>()[r] = r * 100 < rows * ignored_percent ? kIgnoreIndex : r * 37 % kVocabulary;
  return t;
}

void forward_and_backward_of_logits(benchmark::State& state) {
  Generator generator(1);
  Tensor logits = set_requires_grad(randn({state.range(0), kVocabulary}, generator)), t = targets(state.range(0), 0);
  for (auto _ : state) benchmark::DoNotOptimize(gradients({cross_entropy(logits, t)}, {logits}));
  state.SetBytesProcessed(state.iterations() * 3 * logits.bytes());
}

struct Head {
  Tensor x, w, t;
  explicit Head(benchmark::State& state) {
    Generator generator(1);
    x = set_requires_grad(randn({state.range(0), kWidth}, generator));
    w = randn({kVocabulary, kWidth}, generator);
    t = targets(state.range(0), state.range(1));
  }
};

void head_in_chunks(benchmark::State& state) {
  Head h(state);
  for (auto _ : state) benchmark::DoNotOptimize(gradients({linear_cross_entropy(h.x, h.w, h.t)}, {h.x}));
}

void head_with_whole_logits(benchmark::State& state) {
  Head h(state);
  for (auto _ : state)
    benchmark::DoNotOptimize(gradients({cross_entropy(linear(h.x, h.w), h.t, {.mean = false})}, {h.x}));
}

BENCHMARK(forward_and_backward_of_logits)->Arg(128)->UseRealTime();
BENCHMARK(head_in_chunks)->ArgNames({"rows", "ignored_percent"})->Args({600, 0})->Args({600, 60})->UseRealTime();
BENCHMARK(head_with_whole_logits)
    ->ArgNames({"rows", "ignored_percent"})
    ->Args({600, 0})
    ->Args({600, 60})
    ->UseRealTime();

}  // namespace
}  // namespace strata
