#include "tensor/kernels/matmul.h"

#include <cblas.h>
#include <omp.h>

#include <climits>

#include "tensor/create.h"
#include "tensor/kernels/matmul_few.h"
#include "tensor/parallel.h"

namespace strata {

namespace {

using kernels::MatmulOptions;

constexpr int64_t kPanelElements = 1 << 20;             // of a converted panel: 4 MB, well inside the last cache
constexpr int64_t kTileRows = 256, kTileColumns = 512;  // of y, for one thread: BLAS packs (rows + columns) K elements
constexpr int64_t kWorthThreads = 1 << 18;              // multiplications below which waking a thread costs more

Tensor transposed(const Tensor& t) {
  return alias(t, t.layout().transpose(0, 1));
}
Tensor part(const Tensor& t, int axis, int64_t start, int64_t length) {
  return start == 0 && length == t.size(axis) ? t : alias(t, t.layout().narrow(axis, start, length));
}

/// Elements of a row are neighbours and rows do not overlap: what BLAS calls row-major with a leading dimension.
bool is_row_major(const Tensor& t) {
  int64_t rows = t.size(0), columns = t.size(1), row = t.strides()[0], column = t.strides()[1];
  return (columns == 1 || column == 1) && (rows == 1 || (row >= columns && row <= INT_MAX));
}
bool blas_reads(const Tensor& t, DType dtype) {
  return t.dtype() == dtype && (is_row_major(t) || is_row_major(transposed(t)));
}

template <class T>
struct BlasMatrix {
  const T* data;
  CBLAS_TRANSPOSE order;
  int stride;

  explicit BlasMatrix(const Tensor& t) : data(t.data<T>()), order(CblasNoTrans) {
    bool straight = is_row_major(t);
    if (!straight) order = CblasTrans;
    int64_t lines = t.size(straight ? 0 : 1), length = t.size(straight ? 1 : 0);
    stride = static_cast<int>(lines == 1 ? std::max<int64_t>(length, 1) : t.strides()[straight ? 0 : 1]);
  }
};

void blas_gemm(const BlasMatrix<float>& a, const BlasMatrix<float>& b, float* y, int y_stride, int M, int N, int K,
               float alpha, float beta) {
  cblas_sgemm(CblasRowMajor, a.order, b.order, M, N, K, alpha, a.data, a.stride, b.data, b.stride, beta, y, y_stride);
}
void blas_gemm(const BlasMatrix<double>& a, const BlasMatrix<double>& b, double* y, int y_stride, int M, int N, int K,
               double alpha, double beta) {
  cblas_dgemm(CblasRowMajor, a.order, b.order, M, N, K, alpha, a.data, a.stride, b.data, b.stride, beta, y, y_stride);
}
// y [N] = row x [K] times b [K, N]: gemm with M = 1 reads b at a fraction of gemv's speed.
void blas_row(const float* x, const BlasMatrix<float>& b, float* y, int N, int K, float alpha, float beta) {
  bool straight = b.order == CblasNoTrans;
  cblas_sgemv(CblasRowMajor, straight ? CblasTrans : CblasNoTrans, straight ? K : N, straight ? N : K, alpha, b.data,
              b.stride, x, 1, beta, y, 1);
}
void blas_row(const double* x, const BlasMatrix<double>& b, double* y, int N, int K, double alpha, double beta) {
  bool straight = b.order == CblasNoTrans;
  cblas_dgemv(CblasRowMajor, straight ? CblasTrans : CblasNoTrans, straight ? K : N, straight ? N : K, alpha, b.data,
              b.stride, x, 1, beta, y, 1);
}

/// BLAS computes on the calling thread alone while this lives: we share the work out ourselves.
class OneBlasThread {
 public:
  OneBlasThread() { omp_set_num_threads(1); }
  ~OneBlasThread() { omp_set_num_threads(before_); }
  OneBlasThread(const OneBlasThread&) = delete;
  OneBlasThread& operator=(const OneBlasThread&) = delete;

 private:
  int before_ = omp_get_max_threads();
};

template <class T>
void multiply_tile(const Tensor& a, const Tensor& b, const Tensor& y, T alpha, T beta) {
  int m = static_cast<int>(y.size(0)), n = static_cast<int>(y.size(1)), k = static_cast<int>(a.size(1));
  BlasMatrix<T> left(a), right(b);
  OneBlasThread alone;
  if (m == 1 && (k == 1 || a.strides()[1] == 1))
    blas_row(left.data, right, y.mutable_data<T>(), n, k, alpha, beta);
  else
    blas_gemm(left, right, y.mutable_data<T>(), BlasMatrix<T>(y).stride, m, n, k, alpha, beta);
}

/// [0, count) in parts of about `size`, cut at multiples of 16 (whole register tiles of any BLAS kernel).
struct Parts {
  int64_t count, size;
  int64_t number() const { return (count + size - 1) / size; }
  int64_t begin(int64_t i) const { return i == number() ? count : count * i / number() / 16 * 16; }
  Tensor of(const Tensor& t, int axis, int64_t i) const { return part(t, axis, begin(i), begin(i + 1) - begin(i)); }
};

/// Operands and result of T that BLAS can read. y is cut into tiles by its shape alone, so the bits do not depend on
/// the number of threads (BLAS' own threads sum in another order for another number of them).
template <class T>
void multiply_blas(const Tensor& a, const Tensor& b, const Tensor& y, const MatmulOptions& options) {
  int64_t M = y.size(0), N = y.size(1), K = a.size(1);
  check(std::max({M, N, K}) <= INT_MAX, "matmul: sizes must be below 2^31, got {} x {}", a.shape(), b.shape());
  T alpha = static_cast<T>(options.alpha), beta = options.accumulate ? T(1) : T(0);
  Parts rows{M, kTileRows}, columns{N, kTileColumns};
  auto tile = [&](int64_t i) {
    int64_t r = i % rows.number(), c = i / rows.number();
    multiply_tile(rows.of(a, 0, r), columns.of(b, 1, c), columns.of(rows.of(y, 0, r), 1, c), alpha, beta);
  };
  int64_t tiles = rows.number() * columns.number();
  if (M * N * K >= kWorthThreads) return parallel_items(tiles, tile);
  for (int64_t i = 0; i < tiles; ++i) tile(i);
}

/// The values as T, laid out for BLAS; the orientation stays, so that converting reads line by line.
template <class T>
Tensor packed(const Tensor& t) {
  if (blas_reads(t, dtype_of<T>)) return t;
  bool upright = t.strides()[0] != 1;
  Tensor copy = clone_data(upright ? t : transposed(t), dtype_of<T>);
  return upright ? copy : transposed(copy);
}

int64_t panel_size(int64_t count, int64_t K) {
  return std::min(count, std::max<int64_t>(256, kPanelElements / std::max<int64_t>(K, 1)));
}

/// Converts what is not T, a panel at a time.
template <class T>
void multiply_panels(const Tensor& a, const Tensor& b, const Tensor& y, const MatmulOptions& options) {
  bool whole_y = y.dtype() == dtype_of<T>;
  int64_t M = y.size(0), N = y.size(1), K = a.size(1);
  int64_t rows = whole_y && blas_reads(a, dtype_of<T>) ? M : panel_size(M, K);
  int64_t columns = whole_y && blas_reads(b, dtype_of<T>) ? N : panel_size(N, K);
  for (int64_t n = 0; n < N; n += columns) {
    int64_t width = std::min(columns, N - n);
    Tensor b_panel = packed<T>(part(b, 1, n, width));  // [K, width]
    for (int64_t m = 0; m < M; m += rows) {
      int64_t height = std::min(rows, M - m);
      Tensor a_panel = packed<T>(part(a, 0, m, height));          // [height, K]
      Tensor y_panel = part(part(y, 1, n, width), 0, m, height);  // [height, width]
      Tensor sums = whole_y ? y_panel : empty({height, width}, {dtype_of<T>, y.device()});
      if (!whole_y && options.accumulate) copy_(sums, y_panel);
      multiply_blas<T>(a_panel, b_panel, sums, options);
      if (!whole_y) copy_(y_panel, sums);
    }
  }
}

template <class T, class F>
void with_weight(DType dtype, F&& f) {
  if constexpr (std::is_same_v<T, float>) {
    if (dtype == DType::f16) return f.template operator()<Half>();
    if (dtype == DType::bf16) return f.template operator()<BFloat16>();
  }
  f.template operator()<T>();
}

/// y = x w^T for few rows of x; every row of w is one run of neighbours. y may be a transposed view.
template <class T>
void multiply_few(const Tensor& x, const Tensor& w, const Tensor& y, const MatmulOptions& options) {
  bool whole_y = y.dtype() == dtype_of<T>;
  Tensor sums = whole_y ? y : empty(y.shape(), {dtype_of<T>, y.device()});
  if (!whole_y && options.accumulate) copy_(sums, y);
  int64_t M = x.size(0), K = x.size(1), N = w.size(0);
  Tensor rows = x.dtype() == dtype_of<T> && (K == 1 || x.strides()[1] == 1) ? x : clone_data(x, dtype_of<T>);
  with_weight<T>(w.dtype(), [&]<class W>() {
    multiply_few_rows(FewRows<T, W>{rows.data<T>(), rows.strides()[0], w.data<W>(), w.strides()[0],
                                    sums.mutable_data<T>(), sums.strides()[0], sums.strides()[1], M, N, K,
                                    static_cast<T>(options.alpha), options.accumulate});
  });
  if (!whole_y) copy_(y, sums);
}

bool unit_columns(const Tensor& t) {
  return t.size(1) == 1 || t.strides()[1] == 1;
}

/// One product: a [M, K], b [K, N], y [M, N].
template <class T>
void multiply(const Tensor& a, const Tensor& b, const Tensor& y, const MatmulOptions& options) {
  int64_t M = y.size(0), N = y.size(1), K = a.size(1);
  if (K == 0) {
    if (!options.accumulate) fill_(y, 0);
  } else if (M <= kFewRows && unit_columns(transposed(b))) {
    multiply_few<T>(a, transposed(b), y, options);
  } else if (N <= kFewRows && unit_columns(a)) {
    multiply_few<T>(transposed(b), a, transposed(y), options);
  } else {
    multiply_panels<T>(a, b, y, options);
  }
}

void multiply_any(const Tensor& a, const Tensor& b, const Tensor& y, const MatmulOptions& options) {
  if (y.dtype() == DType::f64)
    multiply<double>(a, b, y, options);
  else
    multiply<float>(a, b, y, options);
}

/// Entry `index` of the batch: t without its leading axes.
Tensor entry(const Tensor& t, int64_t index) {
  Layout layout = t.layout();
  for (int axis = t.rank() - 3; axis >= 0; --axis) {
    layout.offset += index % t.shape()[axis] * t.strides()[axis];
    index /= t.shape()[axis];
  }
  auto matrix = [](const Dims& dims) { return Dims{dims[dims.size() - 2], dims[dims.size() - 1]}; };
  return alias(t, Layout{matrix(layout.shape), matrix(layout.strides), layout.offset});
}

/// The whole batch as rows of one matrix, where strides allow it.
std::optional<Layout> as_rows(const Tensor& t) {
  int64_t columns = t.size(-1);
  return columns == 0 ? std::nullopt : t.layout().reshape({t.numel() / columns, columns});
}

bool same_for_all(const Tensor& t) {
  for (int axis = 0; axis < t.rank() - 2; ++axis)
    if (t.shape()[axis] != 1 && t.strides()[axis] != 0) return false;
  return true;
}

void matmul_cpu(const Tensor& a, const Tensor& b, const Tensor& y, const MatmulOptions& options) {
  if (y.numel() == 0) return;
  int64_t count = 1;
  for (int axis = 0; axis < y.rank() - 2; ++axis) count *= y.shape()[axis];
  if (count > 1 && same_for_all(b)) {  // one right operand: rows of all entries together
    std::optional<Layout> rows = as_rows(a), y_rows = as_rows(y);
    if (rows && y_rows) return multiply_any(alias(a, *rows), entry(b, 0), alias(y, *y_rows), options);
  }
  auto one = [&](int64_t i) { multiply_any(entry(a, i), entry(b, i), entry(y, i), options); };
  int64_t work = y.size(-2) * y.size(-1) * a.size(-1);
  bool entries_in_parallel = count >= 4 * num_threads() || work < kWorthThreads;
  int64_t grain = entries_in_parallel ? std::max<int64_t>(1, kWorthThreads / (work + 1)) : count;
  parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) one(i);
  });
}

Register matmul_registered{kernels::matmul, Device::Type::cpu, matmul_cpu};

}  // namespace
}  // namespace strata
