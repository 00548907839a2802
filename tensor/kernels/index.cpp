#include "tensor/kernels/index.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "tensor/parallel.h"

namespace strata {
namespace {

constexpr int64_t kGrain = 16384;  // elements worth a thread

int64_t rows_per_part(int64_t columns) {
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(columns, 1));
}

std::vector<int64_t> wide_ids(const Tensor& ids) {
  std::vector<int64_t> wide(static_cast<size_t>(ids.numel()));
  with_index(ids.dtype(), "index", [&]<class I>() { std::copy_n(ids.data<I>(), ids.numel(), wide.begin()); });
  return wide;
}

void first_outside_cpu(const Tensor& ids, int64_t limit, int64_t& position) {
  position = -1;
  with_index(ids.dtype(), "index", [&]<class I>() {
    const I* id = ids.data<I>();
    for (int64_t i = 0; i < ids.numel(); ++i)
      if (id[i] < 0 || id[i] >= limit) {
        position = i;
        return;
      }
  });
}

void index_select_cpu(const Tensor& x, const Tensor& ids, const Tensor& y) {
  if (y.numel() == 0) return;
  int64_t columns = y.shape()[1], bytes = columns * dtype_size(x.dtype());
  const std::byte* from = x.raw_data();
  std::byte* to = y.mutable_raw_data();
  with_index(ids.dtype(), "index_select", [&]<class I>() {
    const I* id = ids.data<I>();
    parallel_for(ids.numel(), rows_per_part(columns), [&](int64_t begin, int64_t end) {
      for (int64_t m = begin; m < end; ++m)
        std::memcpy(to + m * bytes, from + id[m] * bytes, static_cast<size_t>(bytes));
    });
  });
}

/// to[c] = sum over `rows` of dy[row, c], one row after the other, in the compute type.
template <class T>
void add_up_rows(const T* dy, std::span<const int64_t> rows, int64_t columns, compute_t<T>* sum, T* to) {
  using C = compute_t<T>;
  for (int64_t c = 0; c < columns; ++c) sum[c] = convert<C>(dy[rows[0] * columns + c]);
  for (int64_t row : rows.subspan(1))
    for (int64_t c = 0; c < columns; ++c) sum[c] += convert<C>(dy[row * columns + c]);
  for (int64_t c = 0; c < columns; ++c) to[c] = convert<T>(sum[c]);
}

// Positions sorted by id (and then by position): each row of dx belongs to one run of them, and to one thread.
void index_add_cpu(const Tensor& dy, const Tensor& ids, const Tensor& dx) {
  if (dx.numel() == 0) return;
  std::vector<int64_t> id = wide_ids(ids), order(id.size()), runs;
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  auto id_at = [&](int64_t k) { return id[static_cast<size_t>(order[static_cast<size_t>(k)])]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return id[static_cast<size_t>(a)] < id[static_cast<size_t>(b)]; });
  int64_t count = static_cast<int64_t>(order.size());
  for (int64_t k = 0; k < count; ++k)
    if (k == 0 || id_at(k) != id_at(k - 1)) runs.push_back(k);
  int64_t run_count = static_cast<int64_t>(runs.size());
  runs.push_back(count);
  int64_t columns = dx.shape()[1];
  with_float(dx.dtype(), "index_add", [&]<class T>() {
    const T* from = dy.data<T>();
    T* to = dx.mutable_data<T>();
    parallel_for(dx.shape()[0], rows_per_part(columns), [&](int64_t begin, int64_t end) {
      std::fill(to + begin * columns, to + end * columns, convert<T>(0.0f));
    });
    parallel_for(run_count, rows_per_part(columns), [&](int64_t begin, int64_t end) {
      std::vector<compute_t<T>> sum(static_cast<size_t>(columns));
      for (int64_t r = begin; r < end; ++r) {
        auto first = static_cast<size_t>(runs[static_cast<size_t>(r)]);
        auto last = static_cast<size_t>(runs[static_cast<size_t>(r) + 1]);
        add_up_rows(from, std::span(order).subspan(first, last - first), columns, sum.data(),
                    to + id_at(static_cast<int64_t>(first)) * columns);
      }
    });
  });
}

void gather_cpu(const Tensor& x, const Tensor& ids, const Tensor& y) {
  if (y.numel() == 0) return;
  int64_t rows = y.shape()[0], m = y.shape()[1], n = x.shape()[1];
  with_dtype(x.dtype(), "gather", [&]<class T>() {
    with_index(ids.dtype(), "gather", [&]<class I>() {
      const T* from = x.data<T>();
      const I* id = ids.data<I>();
      T* to = y.mutable_data<T>();
      parallel_for(rows, rows_per_part(m), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r)
          for (int64_t i = r * m; i < (r + 1) * m; ++i) to[i] = from[r * n + id[i]];
      });
    });
  });
}

void scatter_add_cpu(const Tensor& dy, const Tensor& ids, const Tensor& dx) {
  if (dx.numel() == 0) return;
  int64_t rows = dx.shape()[0], n = dx.shape()[1], m = dy.shape()[1];
  std::vector<int64_t> id = wide_ids(ids);
  with_float(dx.dtype(), "scatter_add", [&]<class T>() {
    const T* from = dy.data<T>();
    T* to = dx.mutable_data<T>();
    parallel_for(rows, rows_per_part(n), [&](int64_t begin, int64_t end) {
      std::vector<compute_t<T>> sum(static_cast<size_t>(n));
      for (int64_t r = begin; r < end; ++r) {
        std::fill(sum.begin(), sum.end(), compute_t<T>(0));
        for (int64_t i = r * m; i < (r + 1) * m; ++i)
          sum[static_cast<size_t>(id[static_cast<size_t>(i)])] += convert<compute_t<T>>(from[i]);
        for (int64_t c = 0; c < n; ++c) to[r * n + c] = convert<T>(sum[static_cast<size_t>(c)]);
      }
    });
  });
}

constexpr auto kCpu = Device::Type::cpu;
Register registered[] = {{kernels::first_outside, kCpu, first_outside_cpu},
                         {kernels::index_select, kCpu, index_select_cpu},
                         {kernels::index_add, kCpu, index_add_cpu},
                         {kernels::gather, kCpu, gather_cpu},
                         {kernels::scatter_add, kCpu, scatter_add_cpu}};

}  // namespace
}  // namespace strata
