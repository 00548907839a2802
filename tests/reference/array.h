// The plainest tensor there is, for references: row-major doubles with a shape. References are loops over it.
#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "tensor/dims.h"

namespace strata::reference {

struct Array {
  Dims shape;
  std::vector<double> values;

  Array() = default;
  explicit Array(const Dims& s) : shape(s), values(static_cast<size_t>(numel(s)), 0.0) {}
  Array(const Dims& s, std::vector<double> v) : shape(s), values(std::move(v)) {}

  int rank() const { return shape.size(); }
  int64_t count() const { return static_cast<int64_t>(values.size()); }
  double& operator[](int64_t i) { return values[static_cast<size_t>(i)]; }
  double operator[](int64_t i) const { return values[static_cast<size_t>(i)]; }
  double& at(const Dims& index) { return values[static_cast<size_t>(position(index))]; }
  double at(const Dims& index) const { return values[static_cast<size_t>(position(index))]; }

  int64_t position(const Dims& index) const {
    int64_t p = 0;
    for (int i = 0; i < rank(); ++i) p = p * shape[i] + index[i];
    return p;
  }
  /// The index of the p-th element.
  Dims index(int64_t p) const {
    Dims out = shape;
    for (int i = rank() - 1; i >= 0; --i) {
      out[i] = p % shape[i];
      p /= shape[i];
    }
    return out;
  }
};

using Arrays = std::vector<Array>;

/// f of every element.
template <class F>
Array map(const Array& x, F&& f) {
  Array y(x.shape);
  for (int64_t i = 0; i < y.count(); ++i) y[i] = f(x[i]);
  return y;
}

/// x under a shape it broadcasts to: missing axes come first, size 1 repeats.
inline Array broadcast(const Array& x, const Dims& shape) {
  Array y(shape);
  for (int64_t i = 0; i < y.count(); ++i) {
    Dims full = y.index(i), index;
    for (int k = 0; k < x.rank(); ++k) index.push_back(x.shape[k] == 1 ? 0 : full[k + shape.size() - x.rank()]);
    y[i] = x.at(index);
  }
  return y;
}

/// The shape two shapes broadcast to.
inline Dims common_shape(const Dims& a, const Dims& b) {
  if (a.size() < b.size()) return common_shape(b, a);
  Dims out = a;
  for (int i = 0; i < b.size(); ++i) {
    int at = i + a.size() - b.size();
    if (out[at] == 1) out[at] = b[i];
  }
  return out;
}

/// f(a, b) of every pair, broadcast.
template <class F>
Array map(const Array& a, const Array& b, F&& f) {
  Dims shape = common_shape(a.shape, b.shape);
  Array x = broadcast(a, shape), y = broadcast(b, shape);
  for (int64_t i = 0; i < y.count(); ++i) y[i] = f(x[i], y[i]);
  return y;
}

}  // namespace strata::reference
