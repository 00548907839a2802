// What the CPU's attention kernels share: packed copies of rows, and the scores of one tile.
#pragma once

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "tensor/kernels/attention.h"
#include "tensor/kernels/fast_math.h"
#include "tensor/kernels/tile_product.h"
#include "tensor/parallel.h"

namespace strata::attention_tiles {

inline constexpr int64_t kQueryTile = 48;  // a multiple of tile::kRows
inline constexpr int64_t kKeyTile = 64;    // a multiple of every tile::kPanel

/// The sequences of a batch, with where each one's rows lie in packed copies (key rows filled up to whole panels).
template <class A>
struct Batch {
  struct Sequence {
    int64_t query, key;                // first row in the tensors
    int64_t T, S;                      // rows
    int64_t packed_query, packed_key;  // first row in packed copies
  };
  std::vector<Sequence> sequences;
  int64_t packed_queries = 0, packed_keys = 0;

  template <class Wanted>
  Batch(const Ragged& queries, const Ragged& keys, Wanted&& wanted) {
    for (size_t s = 0; s < queries.start.size(); ++s) {
      if (!wanted(queries.length[s])) continue;
      sequences.push_back(
          {queries.start[s], keys.start[s], queries.length[s], keys.length[s], packed_queries, packed_keys});
      packed_queries += queries.length[s];
      packed_keys += tile::round_up<A>(keys.length[s]);
    }
  }
};

/// Uninitialised numbers of a kernel's own.
template <class A>
class Scratch {
 public:
  explicit Scratch(int64_t count) : data_(new A[static_cast<size_t>(count)]) {}
  A* get() const { return data_.get(); }

 private:
  std::unique_ptr<A[]> data_;
};

/// A head's rows as A, D filled up with zeros to whole panels. x [rows, heads, D].
template <class T, class A>
void pack_rows(const Tensor& x, int64_t first, int64_t count, int64_t head, A* to) {
  int64_t D = x.size(2), width = tile::round_up<A>(D), stride = x.strides()[0];
  const T* from = x.data<T>() + first * stride + head * x.strides()[1];
  for (int64_t r = 0; r < count; ++r, from += stride, to += width) {
    for (int64_t d = 0; d < D; ++d) to[d] = convert<A>(from[d]);
    for (int64_t d = D; d < width; ++d) to[d] = 0;
  }
}

/// A head's rows transposed into panels [rows / kPanel][D][kPanel]; missing rows are zeros.
template <class T, class A>
void pack_panels(const Tensor& x, int64_t first, int64_t count, int64_t head, A* to) {
  constexpr int64_t width = tile::kPanel<A>;
  int64_t D = x.size(2), stride = x.strides()[0];
  const T* from = x.data<T>() + first * stride + head * x.strides()[1];
  for (int64_t r = 0; r < count; r += width, to += D * width) {
    int64_t rows = std::min(width, count - r);
    for (int64_t d = 0; d < D; ++d) {
      for (int64_t i = 0; i < rows; ++i) to[d * width + i] = convert<A>(from[(r + i) * stride + d]);
      for (int64_t i = rows; i < width; ++i) to[d * width + i] = 0;
    }
  }
}

template <class A>
tile::Right<A> panels_from(const A* panels, int64_t D, int64_t row) {
  return {panels + row * D, D * tile::kPanel<A>, tile::kPanel<A>};
}

template <class A>
tile::Right<A> rows_from(const A* rows, int64_t width, int64_t row) {
  return {rows + row * width, tile::kPanel<A>, width};
}

/// One row of scaled scores -> capped.
template <class A>
void cap(A* s, int64_t n, A softcap) {
  for (int64_t j = 0; j < n; ++j) s[j] = softcap * math::tanh(s[j] / softcap);
}

/// The part of `range` within the n keys that begin at `key`, counted from there; empty: first == last.
inline KeyRange within(KeyRange range, int64_t key, int64_t n) {
  int64_t first = std::clamp<int64_t>(range.first - key, 0, n);
  return {first, std::clamp<int64_t>(range.last - key, first, n)};
}

template <class A>
A sum_of_lanes(const tile::Vector<A>& v) {
  constexpr int n = tile::kLanes<A>;
  A half[n / 2];
  for (int i = 0; i < n / 2; ++i) half[i] = v[i] + v[i + n / 2];
  if constexpr (n == 4)
    return half[0] + half[1];
  else
    return (half[0] + half[2]) + (half[1] + half[3]);
}

/// s_j -> exp(s_j - top); returns their sum, in an order that n alone fixes.
template <class A>
A exponentials(A* s, int64_t n, A top) {
  using V = tile::Vector<A>;
  for (int64_t j = 0; j < n; ++j) s[j] = math::exp(s[j] - top);
  V lanes{};
  int64_t j = 0;
  for (; j + tile::kLanes<A> <= n; j += tile::kLanes<A>) lanes += *reinterpret_cast<const V*>(s + j);
  A sum = sum_of_lanes<A>(lanes);
  for (; j < n; ++j) sum += s[j];
  return sum;
}

template <class A>
A greatest(const A* s, int64_t n, A top) {
#pragma omp simd reduction(max : top)
  for (int64_t j = 0; j < n; ++j) top = std::max(top, s[j]);
  return top;
}

/// The keys that any query of [begin, end) sees.
inline KeyRange keys_of_tile(int64_t begin, int64_t end, int64_t T, int64_t S, const AttentionOptions& o) {
  KeyRange range{visible_keys(begin, T, S, o.causal, o.window).first,
                 visible_keys(end - 1, T, S, o.causal, o.window).last};
  return {std::max<int64_t>(range.first, 0), range.last};
}

}  // namespace strata::attention_tiles
