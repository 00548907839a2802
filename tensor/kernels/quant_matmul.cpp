// y = x w^T from packed w. Plan: threads share the rows of w; a few rows of w at a time are unpacked into registers, 32
// values each, and multiplied with up to four rows of x. Whatever the grouping, each y[m, n] is the sum of the same two
// chains of eight lanes in the same order. Bound by unpacking for one row of x, by multiply-adds for more.
#include "tensor/kernels/quant_vectors.h"
#include "tensor/parallel.h"

namespace strata {
namespace {

using quant::Lanes;

constexpr int64_t kGrainValues = 65536;

float sum_of(const Lanes& a) {
  return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
}

struct Product {
  const float* x;
  int64_t x_row;
  const uint8_t* w;
  int64_t row_bytes, columns;
  float* y;
  int64_t y_row;
};

// y[m.., n..] for M rows of x and R rows of w.
template <class Block, int M, int R>
void multiply(const Product& p, int64_t m, int64_t n) {
  Lanes sum[M][R][2] = {};
  const float* x = p.x + m * p.x_row;
  const uint8_t* w = p.w + n * p.row_bytes;
  for (int64_t column = 0; column < p.columns; column += Block::values, w += Block::bytes)
    for (int part = 0; part < Block::values / quant::kPart; ++part, x += quant::kPart)
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        Lanes values[4];
        quant::unpack<Block>(w + r * p.row_bytes, part, values);
#pragma GCC unroll 4
        for (int i = 0; i < M; ++i) {
          const Lanes* from = reinterpret_cast<const Lanes*>(x + i * p.x_row);
          sum[i][r][0] += values[0] * from[0];
          sum[i][r][1] += values[1] * from[1];
          sum[i][r][0] += values[2] * from[2];
          sum[i][r][1] += values[3] * from[3];
        }
      }
  for (int i = 0; i < M; ++i)
    for (int r = 0; r < R; ++r) p.y[(m + i) * p.y_row + n + r] = sum_of(sum[i][r][0] + sum[i][r][1]);
}

// Rows of w at once for M rows of x: eight sums in flight.
constexpr int rows_at_once(int M) {
  return M == 1 ? 4 : M == 2 ? 2 : 1;
}

template <class Block, int M>
void multiply_rows(const Product& p, int64_t m, int64_t begin, int64_t end) {
  constexpr int R = rows_at_once(M);
  int64_t n = begin;
  for (; n + R <= end; n += R) multiply<Block, M, R>(p, m, n);
  for (; n < end; ++n) multiply<Block, M, 1>(p, m, n);
}

template <class Block>
void multiply_part(const Product& p, int64_t M, int64_t begin, int64_t end) {
  constexpr int64_t kRows = 32;  // of w, still in the first cache when the next rows of x come
  for (int64_t n = begin; n < end; n += kRows) {
    int64_t last = std::min(n + kRows, end);
    int64_t m = 0;
    for (; m + 4 <= M; m += 4) multiply_rows<Block, 4>(p, m, n, last);
    if (M - m == 3) multiply_rows<Block, 3>(p, m, n, last);
    if (M - m == 2) multiply_rows<Block, 2>(p, m, n, last);
    if (M - m == 1) multiply_rows<Block, 1>(p, m, n, last);
  }
}

void quantized_matmul_cpu(const Tensor& x, const QuantizedWeight& w, const Tensor& y) {
  if (y.numel() == 0) return;
  quant::with_block(w.type, [&]<class Block>() {
    Product p{
        x.data<float>(), x.strides()[0],          w.bytes.data<uint8_t>(), w.columns / Block::values * Block::bytes,
        w.columns,       y.mutable_data<float>(), y.strides()[0]};
    int64_t M = x.size(0), grain = kGrainValues / std::max<int64_t>(1, w.columns * std::min<int64_t>(M, 4));
    parallel_for(w.rows, std::max<int64_t>(4, grain),
                 [&](int64_t begin, int64_t end) { multiply_part<Block>(p, M, begin, end); });
  });
}

Register quantized_matmul_registered{kernels::quantized_matmul, Device::Type::cpu, quantized_matmul_cpu};

}  // namespace
}  // namespace strata
