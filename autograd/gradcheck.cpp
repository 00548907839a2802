#include "autograd/gradcheck.h"

#include <fmt/format.h>

#include <cmath>

#include "autograd/autograd.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "tensor/create.h"
#include "tensor/random.h"

namespace strata {

namespace {

bool differentiated(const Tensor& t) {
  return is_floating(t.dtype());
}

/// Numbers without symmetry that could hide an error, in [0.5, 1.5).
Tensor irregular_weights(const Tensor& like, uint64_t seed) {
  Generator generator(seed);
  Tensor w = empty(like.shape(), {DType::f64, Device::cpu()});
  uniform_(w, 0.5, 1.5, generator);
  if (like.device().is_cpu()) return w;
  Tensor moved = empty_like(like);
  copy_(moved, w);
  return moved;
}

double weighted_sum(const Tensor& y, const Tensor& weights) {
  std::vector<double> values = to_vector<double>(y), w = to_vector<double>(weights);
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) sum += values[i] * w[i];
  return sum;
}

std::string index_text(int64_t position, const Dims& shape) {
  Dims index = shape;
  for (int i = shape.size() - 1; i >= 0; --i) {
    index[i] = position % shape[i];
    position /= shape[i];
  }
  return to_string(index);
}

/// Leaves on the same bytes, marked.
std::vector<Tensor> as_leaves(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> leaves;
  for (const Tensor& input : inputs) {
    check(!differentiated(input) || input.dtype() == DType::f64, "gradcheck: floating inputs must be f64, got {}",
          dtype_name(input.dtype()));
    leaves.push_back(detach(input));
    if (differentiated(input)) set_requires_grad(leaves.back());
  }
  return leaves;
}

/// (sum of weights * f at x + eps) - (same at x - eps), over 2 eps, for one element of one input.
class Differences {
 public:
  Differences(const TensorFunction& f, const std::vector<Tensor>& inputs, size_t which, Tensor weights, double eps)
      : f_(f), inputs_(inputs), which_(which), weights_(std::move(weights)), eps_(eps) {
    values_ = to_vector<double>(inputs[which]);
  }
  double at(size_t element) {
    double x = values_[element];
    double up = evaluate(element, x + eps_), down = evaluate(element, x - eps_);
    values_[element] = x;
    return (up - down) / (2 * eps_);
  }

 private:
  double evaluate(size_t element, double value) {
    values_[element] = value;
    const Tensor& original = inputs_[which_];
    Tensor moved = empty(original.shape(), {DType::f64, original.device()});
    copy_(moved, from_values(values_, original.shape()));
    inputs_[which_] = moved;
    double sum = weighted_sum(f_(inputs_), weights_);
    return sum;
  }

  const TensorFunction& f_;
  std::vector<Tensor> inputs_;
  size_t which_;
  Tensor weights_;
  double eps_;
  std::vector<double> values_;
};

void compare(GradcheckReport& report, size_t input, const Dims& shape, const std::vector<double>& gradient,
             Differences& differences, const GradcheckOptions& options) {
  for (size_t i = 0; i < gradient.size(); ++i) {
    double expected = differences.at(i);
    double ratio = std::abs(gradient[i] - expected) / (options.atol + options.rtol * std::abs(expected));
    if (ratio <= report.worst) continue;
    report.worst = std::isnan(ratio) ? HUGE_VAL : ratio;
    if (ratio <= 1) continue;
    report.mismatch = fmt::format("gradient of input {} at {} (shape {}) is {:.10g}, central difference {:.10g}", input,
                                  index_text(static_cast<int64_t>(i), shape), shape, gradient[i], expected);
    if (std::isnan(ratio)) return;
  }
}

}  // namespace

GradcheckReport gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, GradcheckOptions options) {
  EnableGrad on;
  std::vector<Tensor> leaves = as_leaves(inputs);
  Tensor y = f(leaves);
  check(y.dtype() == DType::f64, "gradcheck: the result must be f64, got {}", dtype_name(y.dtype()));
  Tensor weights = irregular_weights(y, 17);
  std::vector<Tensor> wanted;
  for (const Tensor& leaf : leaves)
    if (differentiated(leaf)) wanted.push_back(leaf);
  std::vector<Tensor> all(wanted.size());  // stays undefined where y depends on nothing
  if (requires_grad(y)) all = gradients({y}, wanted, {weights});
  GradcheckReport report;
  size_t next = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!differentiated(inputs[i])) continue;
    const Tensor& gradient = all[next++];
    std::vector<double> values(static_cast<size_t>(inputs[i].numel()), 0.0);
    if (gradient) values = to_vector<double>(gradient);
    NoGrad off;
    Differences differences(f, inputs, i, weights, options.eps);
    compare(report, i, inputs[i].shape(), values, differences, options);
  }
  return report;
}

GradcheckReport gradgradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, GradcheckOptions options) {
  // The last input is the gradient that comes in; the result is one number made of all gradients.
  Tensor dy;
  {
    NoGrad off;
    dy = irregular_weights(f(inputs), 23);
  }
  TensorFunction derivative = [&f](const std::vector<Tensor>& all) {
    bool second = grad_enabled();  // false while gradcheck takes differences
    EnableGrad on;
    std::vector<Tensor> given(all.begin(), all.end() - 1), wanted;
    if (!second) given = as_leaves(given);
    for (const Tensor& t : given)
      if (differentiated(t)) wanted.push_back(t);
    Tensor y = f(given);
    Tensor total = zeros({}, {DType::f64, y.device()});
    if (!requires_grad(y)) return total;
    uint64_t seed = 31;
    for (const Tensor& gradient : gradients({y}, wanted, {all.back()}, {.create_graph = second})) {
      ++seed;
      if (gradient) total = total + sum(gradient * irregular_weights(gradient, seed));
    }
    return total;
  };
  std::vector<Tensor> all = inputs;
  all.push_back(dy);
  return gradcheck(derivative, all, options);
}

}  // namespace strata
