#include "tensor/kernels/copy.h"

#include <cstring>

#include "tensor/strided.h"

namespace strata {
namespace {

template <class From, class To>
void copy_rows(const Tensor& x, const Tensor& y) {
  const From* from = x.data<From>();
  To* to = y.mutable_data<To>();
  StridedLoop<2> loop(y.shape(), {x.strides(), y.strides()});
  loop.for_each_row([&](const std::array<int64_t, 2>& at, int64_t n, const std::array<int64_t, 2>& step) {
    const From* a = from + at[0];
    To* b = to + at[1];
    if (step[0] == 1 && step[1] == 1) {
      if constexpr (std::is_same_v<From, To>) {
        std::memcpy(b, a, static_cast<size_t>(n) * sizeof(To));
      } else {
        for (int64_t i = 0; i < n; ++i) b[i] = convert<To>(a[i]);
      }
    } else {
      for (int64_t i = 0; i < n; ++i) b[i * step[1]] = convert<To>(a[i * step[0]]);
    }
  });
}

void copy_cpu(const Tensor& x, const Tensor& y) {
  if (y.numel() == 0) return;
  with_dtype(x.dtype(), "copy",
             [&]<class From>() { with_dtype(y.dtype(), "copy", [&]<class To>() { copy_rows<From, To>(x, y); }); });
}

void fill_cpu(const Tensor& y, double value) {
  if (y.numel() == 0) return;
  with_dtype(y.dtype(), "fill", [&]<class T>() {
    T v = convert<T>(value);
    T* to = y.mutable_data<T>();
    StridedLoop<1> loop(y.shape(), {y.strides()});
    loop.for_each_row([&](const std::array<int64_t, 1>& at, int64_t n, const std::array<int64_t, 1>& step) {
      for (int64_t i = 0; i < n; ++i) to[at[0] + i * step[0]] = v;
    });
  });
}

Register copy_registered{kernels::copy, Device::Type::cpu, copy_cpu};
Register fill_registered{kernels::fill, Device::Type::cpu, fill_cpu};

}  // namespace
}  // namespace strata
