// How the CPU runs a pointwise functor: each functor is compiled once per compute type, over dense elements; the
// loop around it hands it pieces of the operands, straight from memory where they are dense and of that type, and
// through a small buffer where they are strided, repeated, f16 or bf16.
#pragma once

#include <span>
#include <utility>

#include "tensor/tensor.h"

namespace strata::pointwise {

/// out[0][i] = functor(in[0][i], in[1][i], ...) for n dense elements.
using Body = void (*)(const void* functor, int64_t n, const std::byte* const* in, std::byte* const* out);

template <class F, class Out, class... In>
void body(const void* functor, int64_t n, const std::byte* const* in, std::byte* const* out) {
  const F f = *static_cast<const F*>(functor);
  [&]<size_t... k>(std::index_sequence<k...>) {
    [&](Out* y, const In*... x) {
#pragma GCC ivdep  // y may be one of the x, element by element
      for (int64_t i = 0; i < n; ++i) y[i] = f(x[i]...);
    }(reinterpret_cast<Out*>(out[0]), reinterpret_cast<const In*>(in[k])...);
  }
  (std::index_sequence_for<In...>{});
}

/// How f16 and bf16 elements reach the body: as float, or as they are.
enum class Reduced { as_float, as_is };

/// Runs the body over all elements, in parallel. All tensors have one shape; at most 5 in all.
void run(Body body, const void* functor, std::initializer_list<Tensor> in, std::initializer_list<Tensor> out,
         Reduced reduced = Reduced::as_float);

/// y = f(x...), computed in the operands' compute type (float or double).
template <class F, class... X>
void run_floating(const F& f, const Tensor& y, const X&... x) {
  auto pick = [](const auto&, auto type) { return type; };
  bool wide = y.dtype() == DType::f64;
  Body chosen = wide ? Body(body<F, double, decltype(pick(x, double{}))...>)
                     : Body(body<F, float, decltype(pick(x, float{}))...>);
  run(chosen, &f, {x...}, {y});
}

}  // namespace strata::pointwise
