// Tensors seen as matrices: the leading axes together are the rows, the last axis the columns. For the ops' own files.
#pragma once

#include "tensor/create.h"

namespace strata {

/// Product of the leading axes.
inline int64_t row_count(const Dims& shape) {
  Dims leading = shape;
  leading.erase(leading.size() - 1);
  return numel(leading);
}

/// t [..., C] as [R, C] without a graph: a view where strides allow it, else a copy.
inline Tensor as_matrix(const Tensor& t) {
  Dims shape{row_count(t.shape()), t.size(-1)};
  if (t.shape() == shape) return alias(t);
  std::optional<Layout> view = t.layout().reshape(shape);
  return view ? alias(t, *view) : alias(clone_data(t), Layout::contiguous(shape));
}

/// The same, row-major.
inline Tensor as_contiguous_matrix(const Tensor& t) {
  return as_matrix(t.is_contiguous() ? t : clone_data(t));
}

/// The type sums over t's elements run in.
inline DType sum_dtype(DType dtype) {
  return dtype == DType::f64 ? DType::f64 : DType::f32;
}

}  // namespace strata
