// Rotary embedding by its definition: each pair (i, i + R/2) of a head is a point in the plane, turned by position
// times base^(-2i/R).
#pragma once

#include "tests/reference/array.h"

namespace strata::reference {

/// angle(position, i) of pair i.
template <class Angle>
Array rope(const Array& x, int64_t R, const std::vector<int64_t>& positions, Angle&& angle) {
  Array y = x;
  for (int64_t n = 0; n < x.shape[0]; ++n)
    for (int64_t h = 0; h < x.shape[1]; ++h)
      for (int64_t i = 0; i < R / 2; ++i) {
        double a = x.at({n, h, i}), b = x.at({n, h, i + R / 2}), t = angle(positions[static_cast<size_t>(n)], i);
        y.at({n, h, i}) = a * std::cos(t) - b * std::sin(t);
        y.at({n, h, i + R / 2}) = a * std::sin(t) + b * std::cos(t);
      }
  return y;
}

}  // namespace strata::reference
