// Are derivatives right? Compares them with central differences of the forward pass, in f64.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace strata {

struct GradcheckOptions {
  double eps = 1e-5;   // step of the difference; its own error is about eps^2 f'''
  double atol = 1e-8;  // agreement: |gradient - difference| <= atol + rtol |difference|
  double rtol = 1e-6;
};

struct GradcheckReport {
  double worst = 0;      // greatest |gradient - difference| / (atol + rtol |difference|)
  std::string mismatch;  // names the worst element where worst > 1; empty: all agree
  bool ok() const { return mismatch.empty(); }
};

using TensorFunction = std::function<Tensor(const std::vector<Tensor>&)>;

/// The gradient of a weighted sum of f(inputs), with fixed irregular weights, against (f(x + eps) - f(x - eps)) / 2 eps
/// for every element of every floating input. Inputs must be f64 (integers are passed through); any strides. f must
/// give the same values whenever it is called with the same inputs.
GradcheckReport gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, GradcheckOptions options = {});
/// The same for the derivative itself (as a function of the inputs and of the gradient that comes in).
GradcheckReport gradgradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs,
                              GradcheckOptions options = {});

}  // namespace strata
