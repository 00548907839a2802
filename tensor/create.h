// New tensors, and their elements as C++ values.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace strata {

struct TensorOptions {
  DType dtype = DType::f32;
  Device device = Device::cpu();
};

/// Uninitialised elements.
Tensor empty(const Dims& shape, TensorOptions options = {});
Tensor zeros(const Dims& shape, TensorOptions options = {});
Tensor ones(const Dims& shape, TensorOptions options = {});
Tensor full(const Dims& shape, double value, TensorOptions options = {});
/// empty / zeros with t's shape, dtype and device.
Tensor empty_like(const Tensor& t);
Tensor zeros_like(const Tensor& t);
/// [0, count).
Tensor arange(int64_t count, TensorOptions options = {DType::i64, Device::cpu()});
Tensor eye(int64_t n, TensorOptions options = {});

/// Copies host values; values.size() must be numel(shape).
template <class T>
Tensor from_values(std::span<const T> values, const Dims& shape);
template <class T>
Tensor from_values(const std::vector<T>& values, const Dims& shape) {
  return from_values(std::span<const T>(values), shape);
}
template <class T>
Tensor from_values(std::initializer_list<T> values, const Dims& shape) {
  return from_values(std::span<const T>(values.begin(), values.size()), shape);
}
/// A scalar (shape []).
Tensor scalar(double value, TensorOptions options = {});

/// All elements in row-major order, converted to T, whatever strides, dtype or device.
template <class T>
std::vector<T> to_vector(const Tensor& t);

/// Sets every element (an in-place write).
void fill_(const Tensor& t, double value);
/// Copies values with conversion and broadcasting of src to dst's shape (an in-place write; records nothing).
void copy_(const Tensor& dst, const Tensor& src);
/// A contiguous copy on new memory, without a graph.
Tensor clone_data(const Tensor& t);
Tensor clone_data(const Tensor& t, DType dtype);

/// Short text: dtype, shape and elements (edges of long axes).
std::string to_string(const Tensor& t);

}  // namespace strata
