#include "tensor/create.h"

#include <fmt/format.h>

#include <cstring>

#include "tensor/kernels/copy.h"

namespace strata {

Tensor empty(const Dims& shape, TensorOptions options) {
  Layout layout = Layout::contiguous(shape);
  int64_t bytes = 0;
  check(!__builtin_mul_overflow(layout.numel(), dtype_size(options.dtype), &bytes), "empty: too many bytes, shape {}",
        shape);
  return Tensor(Storage::allocate(bytes, options.device), layout, options.dtype);
}

Tensor full(const Dims& shape, double value, TensorOptions options) {
  Tensor t = empty(shape, options);
  fill_(t, value);
  return t;
}

Tensor zeros(const Dims& shape, TensorOptions options) {
  return full(shape, 0, options);
}
Tensor ones(const Dims& shape, TensorOptions options) {
  return full(shape, 1, options);
}
Tensor empty_like(const Tensor& t) {
  return empty(t.shape(), {t.dtype(), t.device()});
}
Tensor zeros_like(const Tensor& t) {
  return zeros(t.shape(), {t.dtype(), t.device()});
}
Tensor scalar(double value, TensorOptions options) {
  return full({}, value, options);
}

Tensor arange(int64_t count, TensorOptions options) {
  check(count >= 0, "arange: count must be non-negative, got {}", count);
  Tensor t = empty({count}, {options.dtype, Device::cpu()});
  with_dtype(options.dtype, "arange", [&]<class T>() {
    T* p = t.mutable_data<T>();
    for (int64_t i = 0; i < count; ++i) p[i] = convert<T>(i);
  });
  if (options.device.is_cpu()) return t;
  Tensor moved = empty({count}, options);
  copy_(moved, t);
  return moved;
}

Tensor eye(int64_t n, TensorOptions options) {
  Tensor t = zeros({n, n}, options);
  fill_(alias(t, Layout{{n}, {n + 1}, 0}), 1);
  return t;
}

void fill_(const Tensor& t, double value) {
  kernels::fill(t.device(), t, value);
}

void copy_(const Tensor& dst, const Tensor& src) {
  Tensor x = src.shape() == dst.shape() ? src : alias(src, src.layout().broadcast_to(dst.shape()));
  Device device = dst.device().is_cpu() ? src.device() : dst.device();
  kernels::copy(device, x, dst);
}

Tensor clone_data(const Tensor& t, DType dtype) {
  Tensor y = empty(t.shape(), {dtype, t.device()});
  copy_(y, t);
  return y;
}

Tensor clone_data(const Tensor& t) {
  return clone_data(t, t.dtype());
}

template <class T>
Tensor from_values(std::span<const T> values, const Dims& shape) {
  check(static_cast<int64_t>(values.size()) == numel(shape), "from_values: {} values for shape {}", values.size(),
        shape);
  Tensor t = empty(shape, {dtype_of<T>, Device::cpu()});
  if (!values.empty()) std::memcpy(t.mutable_data<T>(), values.data(), values.size_bytes());
  return t;
}

template <class T>
std::vector<T> to_vector(const Tensor& t) {
  std::vector<T> out(static_cast<size_t>(t.numel()));
  if (out.empty()) return out;
  Tensor host = empty(t.shape(), {dtype_of<T>, Device::cpu()});
  copy_(host, t);
  std::memcpy(out.data(), host.data<T>(), out.size() * sizeof(T));
  return out;
}

#define STRATA_ELEMENT(T)                                          \
  template Tensor from_values<T>(std::span<const T>, const Dims&); \
  template std::vector<T> to_vector<T>(const Tensor&);
STRATA_ELEMENT(double)
STRATA_ELEMENT(float)
STRATA_ELEMENT(Half)
STRATA_ELEMENT(BFloat16)
STRATA_ELEMENT(int64_t)
STRATA_ELEMENT(int32_t)
STRATA_ELEMENT(int8_t)
STRATA_ELEMENT(uint8_t)
#undef STRATA_ELEMENT

namespace {
constexpr int64_t kEdge = 3;

void write_elements(std::string& out, const std::vector<double>& values, const Dims& shape, int axis, int64_t at) {
  if (axis == shape.size()) {
    out += fmt::format("{:.5g}", values[static_cast<size_t>(at)]);
    return;
  }
  int64_t inner = 1;
  for (int i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  out += '[';
  for (int64_t i = 0; i < shape[axis]; ++i) {
    if (i) out += ", ";
    if (shape[axis] > 2 * kEdge && i == kEdge) {
      out += "...";
      i = shape[axis] - kEdge - 1;
      continue;
    }
    write_elements(out, values, shape, axis + 1, at + i * inner);
  }
  out += ']';
}
}  // namespace

std::string to_string(const Tensor& t) {
  std::string out = fmt::format("{}{} ", dtype_name(t.dtype()), to_string(t.shape()));
  write_elements(out, to_vector<double>(t), t.shape(), 0, 0);
  return out;
}

}  // namespace strata
