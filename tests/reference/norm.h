// Normalisation over the last axis, in double.
#pragma once

#include "tests/reference/array.h"

namespace strata::reference {

/// (x - mean) / sqrt(var + eps), or x / sqrt(mean(x^2) + eps).
inline Array normalize(const Array& x, double eps, bool centred) {
  Array y(x.shape);
  int64_t C = x.shape.back();
  for (int64_t start = 0; start < x.count(); start += C) {
    double mean = 0, square = 0;
    for (int64_t i = 0; centred && i < C; ++i) mean += x[start + i] / static_cast<double>(C);
    for (int64_t i = 0; i < C; ++i) square += (x[start + i] - mean) * (x[start + i] - mean) / static_cast<double>(C);
    for (int64_t i = 0; i < C; ++i) y[start + i] = (x[start + i] - mean) / std::sqrt(square + eps);
  }
  return y;
}

inline Array rms_norm(const Array& x, const Array& w, double eps, double offset = 0) {
  return map(normalize(x, eps, false), w, [offset](double v, double scale) { return v * (scale + offset); });
}

inline Array layer_norm(const Array& x, const Array& w, const Array& b, double eps) {
  Array scaled = map(normalize(x, eps, true), w, [](double v, double scale) { return v * scale; });
  return map(scaled, b, [](double v, double shift) { return v + shift; });
}

}  // namespace strata::reference
