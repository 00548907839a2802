#include "nn/init.h"

#include <cmath>

namespace strata::nn {

namespace {
double fan_in(const Tensor& w) {
  check(w.rank() >= 2, "init: expected at least 2 dimensions, got {}", w.shape());
  return static_cast<double>(w.numel() / std::max<int64_t>(w.size(0), 1));
}
}  // namespace

void kaiming_uniform_(const Tensor& w, double a, Generator& generator) {
  double bound = std::sqrt(2.0 / (1.0 + a * a)) * std::sqrt(3.0 / fan_in(w));
  uniform_(w, -bound, bound, generator);
}

void kaiming_normal_(const Tensor& w, Generator& generator) {
  normal_(w, 0, std::sqrt(2.0 / fan_in(w)), generator);
}

void xavier_uniform_(const Tensor& w, Generator& generator) {
  double receptive = fan_in(w) / static_cast<double>(w.size(1));
  double bound = std::sqrt(6.0 / (fan_in(w) + static_cast<double>(w.size(0)) * receptive));
  uniform_(w, -bound, bound, generator);
}

}  // namespace strata::nn
