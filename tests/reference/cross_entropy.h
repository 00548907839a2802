// Cross entropy of rows of logits against classes, in double.
#pragma once

#include "tests/reference/array.h"

namespace strata::reference {

/// log sum_j exp(x_j) - x_target of every row; 0 where the target is `ignored`.
inline Array token_nll(const Array& logits, const Array& targets, double ignored = -100) {
  Array y({logits.shape[0]});
  for (int64_t r = 0; r < logits.shape[0]; ++r) {
    if (targets[r] == ignored) continue;
    double at_target = logits.at({r, static_cast<int64_t>(targets[r])}), total = 0;
    for (int64_t j = 0; j < logits.shape[1]; ++j) total += std::exp(logits.at({r, j}) - at_target);
    y[r] = std::log(total);
  }
  return y;
}

inline Array cross_entropy(const Array& logits, const Array& targets, bool mean, double ignored = -100) {
  Array nll = token_nll(logits, targets, ignored), y((Dims()));
  double counted = 0;
  for (int64_t r = 0; r < nll.count(); ++r) {
    y[0] += nll[r];
    counted += targets[r] != ignored;
  }
  if (mean && counted > 0) y[0] /= counted;
  return y;
}

}  // namespace strata::reference
