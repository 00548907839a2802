#include "tensor/kernels/matmul_few.h"

#include <cstring>

#include "tensor/dtype.h"
#include "tensor/parallel.h"

#ifdef __F16C__
#include <immintrin.h>
#endif

namespace strata {

namespace {

constexpr int kVectorBytes = 32;

// A GCC / Clang vector: compiles to whatever the machine has, and stays in registers where an array would not.
template <class T>
struct Vector {
  typedef T type __attribute__((vector_size(kVectorBytes)));
  typedef T unaligned __attribute__((vector_size(kVectorBytes), aligned(alignof(T)), may_alias));
  static constexpr int lanes = kVectorBytes / sizeof(T);
};

template <class T>
inline void load(const T* p, typename Vector<T>::type& v) {
  v = *reinterpret_cast<const typename Vector<T>::unaligned*>(p);
}

inline void load(const BFloat16* p, Vector<float>::type& v) {
  typedef uint16_t Narrow __attribute__((vector_size(16), aligned(2), may_alias));
  typedef uint32_t Wide __attribute__((vector_size(32)));
  Wide bits = __builtin_convertvector(*reinterpret_cast<const Narrow*>(p), Wide) << 16;
  std::memcpy(&v, &bits, sizeof(v));
}

inline void load(const Half* p, Vector<float>::type& v) {
#ifdef __F16C__
  v = reinterpret_cast<Vector<float>::type>(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#else
  for (int i = 0; i < Vector<float>::lanes; ++i) v[i] = static_cast<float>(p[i]);
#endif
}

// rows x columns sums side by side: `rows` rows of x against `columns` rows of w, one vector of partial sums each.
template <int rows, int columns, class T, class W>
inline void multiply_tile(const FewRows<T, W>& p, int64_t n) {
  using V = typename Vector<T>::type;
  constexpr int lanes = Vector<T>::lanes;
  const W* w = p.w + n * p.w_stride;
  V sums[rows][columns] = {};
  int64_t k = 0;
  for (; k + lanes <= p.K; k += lanes) {
    V xs[rows];
#pragma GCC unroll 8
    for (int m = 0; m < rows; ++m) load(p.x + m * p.x_stride + k, xs[m]);
#pragma GCC unroll 8
    for (int c = 0; c < columns; ++c) {
      V ws;
      load(w + c * p.w_stride + k, ws);
#pragma GCC unroll 8
      for (int m = 0; m < rows; ++m) sums[m][c] += xs[m] * ws;
    }
  }
#pragma GCC unroll 8
  for (int m = 0; m < rows; ++m) {
#pragma GCC unroll 8
    for (int c = 0; c < columns; ++c) {
      T sum = 0;
      for (int i = 0; i < lanes; ++i) sum += sums[m][c][i];
      for (int64_t j = k; j < p.K; ++j) sum += p.x[m * p.x_stride + j] * convert<T>(w[c * p.w_stride + j]);
      T& y = p.y[m * p.y_row + (n + c) * p.y_col];
      y = p.accumulate ? y + p.alpha * sum : p.alpha * sum;
    }
  }
}

template <int rows, class T, class W>
void multiply_rows(const FewRows<T, W>& p) {
  constexpr int columns = rows <= 2 ? 4 : rows <= 4 ? 2 : 1;  // eight sums in flight hide the latency of an FMA
  constexpr int64_t kGrain = 1 << 16;
  parallel_for(p.N, std::max<int64_t>(16, kGrain / (p.K * rows + 1)), [&](int64_t begin, int64_t end) {
    int64_t n = begin;
    for (; n + columns <= end; n += columns) multiply_tile<rows, columns>(p, n);
    for (; n < end; ++n) multiply_tile<rows, 1>(p, n);
  });
}

}  // namespace

template <class T, class W>
void multiply_few_rows(const FewRows<T, W>& p) {
  switch (p.M) {
    case 1: return multiply_rows<1>(p);
    case 2: return multiply_rows<2>(p);
    case 3: return multiply_rows<3>(p);
    case 4: return multiply_rows<4>(p);
    case 5: return multiply_rows<5>(p);
    case 6: return multiply_rows<6>(p);
    case 7: return multiply_rows<7>(p);
    default: return multiply_rows<8>(p);
  }
}

template void multiply_few_rows(const FewRows<double, double>&);
template void multiply_few_rows(const FewRows<float, float>&);
template void multiply_few_rows(const FewRows<float, Half>&);
template void multiply_few_rows(const FewRows<float, BFloat16>&);

}  // namespace strata
