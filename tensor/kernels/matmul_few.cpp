#include "tensor/kernels/matmul_few.h"

#include <cstring>

#include "tensor/dtype.h"
#include "tensor/parallel.h"

#if defined(__F16C__) || defined(__FMA__)
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

// sum + a * b, rounded once where the machine can. Written out, because the compiler is free to fuse in one tile and
// not in another (GCC tuned for Zen does not in the narrowest), and then a row's bits would depend on its neighbours.
inline void multiply_add(const Vector<float>::type& a, const Vector<float>::type& b, Vector<float>::type& sum) {
#ifdef __FMA__
  sum = reinterpret_cast<Vector<float>::type>(_mm256_fmadd_ps(a, b, sum));
#else
  sum += a * b;
#endif
}
inline void multiply_add(const Vector<double>::type& a, const Vector<double>::type& b, Vector<double>::type& sum) {
#ifdef __FMA__
  sum = reinterpret_cast<Vector<double>::type>(_mm256_fmadd_pd(a, b, sum));
#else
  sum += a * b;
#endif
}

// The last elements of a row, fewer than a vector: zeros behind them.
template <class T, class W>
inline void load_end(const W* p, int64_t count, typename Vector<T>::type& v) {
  v = typename Vector<T>::type{};
  for (int64_t i = 0; i < count; ++i) v[i] = convert<T>(p[i]);
}

// rows x columns sums side by side: `rows` rows of x against `columns` rows of w from the n-th, one vector of partial
// sums each. Nothing but these vectors is ever added to, so every shape of tile rounds alike.
template <int rows, int columns, class T, class W>
inline void multiply_tile(const FewRows<T, W>& p, int64_t n) {
  using V = typename Vector<T>::type;
  constexpr int lanes = Vector<T>::lanes;
  const W* w = p.w + n * p.w_stride;
  V sums[rows][columns] = {};
  auto add = [&](auto&& load_x, auto&& load_w) {
    V xs[rows];
#pragma GCC unroll 8
    for (int m = 0; m < rows; ++m) load_x(p.x + m * p.x_stride, xs[m]);
#pragma GCC unroll 8
    for (int c = 0; c < columns; ++c) {
      V ws;
      load_w(w + c * p.w_stride, ws);
#pragma GCC unroll 8
      for (int m = 0; m < rows; ++m) multiply_add(xs[m], ws, sums[m][c]);
    }
  };
  int64_t k = 0;
  for (; k + lanes <= p.K; k += lanes)
    add([&](const T* row, V& v) { load(row + k, v); }, [&](const W* row, V& v) { load(row + k, v); });
  if (int64_t rest = p.K - k; rest > 0)
    add([&](const T* row, V& v) { load_end<T>(row + k, rest, v); },
        [&](const W* row, V& v) { load_end<T>(row + k, rest, v); });
#pragma GCC unroll 8
  for (int m = 0; m < rows; ++m) {
#pragma GCC unroll 8
    for (int c = 0; c < columns; ++c) {
      T sum = 0;
      for (int i = 0; i < lanes; ++i) sum += sums[m][c][i];
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
