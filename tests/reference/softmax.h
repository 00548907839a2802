// Softmax along one axis: exp(x_i) / sum_j exp(x_j), and its logarithm, in double.
#pragma once

#include "tests/reference/array.h"

namespace strata::reference {

inline Array softmax(const Array& x, int axis) {
  Array y(x.shape);
  for (int64_t i = 0; i < x.count(); ++i) {
    double total = 0;
    Dims at = x.index(i);
    for (int64_t j = 0; j < x.shape[axis]; ++j) {
      at[axis] = j;
      total += std::exp(x.at(at) - x[i]);
    }
    y[i] = 1 / total;
  }
  return y;
}

inline Array log_softmax(const Array& x, int axis) {
  return map(softmax(x, axis), [](double p) { return std::log(p); });
}

}  // namespace strata::reference
