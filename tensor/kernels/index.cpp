#include "tensor/kernels/index.h"

#include <cstring>

#include "tensor/parallel.h"

namespace strata {
namespace {

constexpr int64_t kGrain = 16384;

int64_t rows_a_part(int64_t columns) {
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(columns, 1));
}

// One copy a row; bound by memory.
void gather_rows_cpu(const Tensor& x, const Tensor& ids, const Tensor& y) {
  if (y.numel() == 0) return;
  auto row = static_cast<size_t>(x.size(1) * dtype_size(x.dtype()));
  const std::byte* from = x.raw_data();
  std::byte* to = y.mutable_raw_data();
  with_index(ids.dtype(), "gather_rows", [&]<class I>() {
    const I* index = ids.data<I>();
    parallel_for(ids.numel(), rows_a_part(x.size(1)), [=](int64_t begin, int64_t end) {
      for (int64_t m = begin; m < end; ++m)
        std::memcpy(to + static_cast<size_t>(m) * row, from + static_cast<size_t>(index[m]) * row, row);
    });
  });
}

// Parts own ranges of columns, so that every row sums in the order of ids whatever the threads are.
void add_rows_cpu(const Tensor& y, const Tensor& ids, const Tensor& x) {
  if (y.numel() == 0) return;
  int64_t columns = x.size(1), count = ids.numel();
  with_float(x.dtype(), "add_rows", [&]<class T>() {
    const T* from = y.data<T>();
    T* to = x.mutable_data<T>();
    with_index(ids.dtype(), "add_rows", [&]<class I>() {
      const I* index = ids.data<I>();
      int64_t grain = std::max<int64_t>(64, kGrain / count);
      parallel_for(columns, grain, [=](int64_t begin, int64_t end) {
        for (int64_t m = 0; m < count; ++m) {
          T* sum = to + static_cast<int64_t>(index[m]) * columns;
          const T* add = from + m * columns;
          for (int64_t c = begin; c < end; ++c)
            sum[c] = convert<T>(convert<compute_t<T>>(sum[c]) + convert<compute_t<T>>(add[c]));
        }
      });
    });
  });
}

template <class F>
void for_each_last(const Tensor& x, const Tensor& ids, F&& f) {
  int64_t n = x.size(1), m = ids.size(1);
  with_index(ids.dtype(), "gather_last", [&]<class I>() {
    const I* index = ids.data<I>();
    parallel_for(ids.size(0), rows_a_part(m), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r)
        for (int64_t k = 0; k < m; ++k) f(r * n + static_cast<int64_t>(index[r * m + k]), r * m + k);
    });
  });
}

void gather_last_cpu(const Tensor& x, const Tensor& ids, const Tensor& y) {
  if (y.numel() == 0) return;
  with_dtype(x.dtype(), "gather_last", [&]<class T>() {
    const T* from = x.data<T>();
    T* to = y.mutable_data<T>();
    for_each_last(x, ids, [=](int64_t at_x, int64_t at_y) { to[at_y] = from[at_x]; });
  });
}

void add_last_cpu(const Tensor& y, const Tensor& ids, const Tensor& x) {
  if (y.numel() == 0) return;
  with_float(x.dtype(), "add_last", [&]<class T>() {
    const T* from = y.data<T>();
    T* to = x.mutable_data<T>();
    for_each_last(x, ids, [=](int64_t at_x, int64_t at_y) {
      to[at_x] = convert<T>(convert<compute_t<T>>(to[at_x]) + convert<compute_t<T>>(from[at_y]));
    });
  });
}

Register gather_rows_registered{kernels::gather_rows, Device::Type::cpu, gather_rows_cpu};
Register add_rows_registered{kernels::add_rows, Device::Type::cpu, add_rows_cpu};
Register gather_last_registered{kernels::gather_last, Device::Type::cpu, gather_last_cpu};
Register add_last_registered{kernels::add_last, Device::Type::cpu, add_last_cpu};

}  // namespace
}  // namespace strata
