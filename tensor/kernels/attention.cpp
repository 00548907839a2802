// Forward. Plan: keys and values are packed once per key head (panels of keys for q k^T, rows of values for p v); then
// every (sequence, query head, tile of queries) is one item: it walks the tiles of keys it can see and keeps, for each
// query, the greatest score so far, the sum of exponentials and the weighted sum of values. Few queries (decoding) skip
// the packing: attention_few.cpp.
#include "tensor/kernels/attention.h"

#include "tensor/kernels/attention_few.h"
#include "tensor/kernels/attention_tiles.h"

namespace strata {
namespace {

using namespace attention_tiles;

template <class A>
struct Packed {
  Scratch<A> panels, rows;  // keys [Hk][packed_keys / kPanel][D][kPanel]; values [Hk][packed_keys][width]
};

template <class T, class A>
Packed<A> pack(const Tensor& k, const Tensor& v, const Batch<A>& batch) {
  int64_t Hk = k.size(1), D = k.size(2), width = tile::round_up<A>(D), total = batch.packed_keys;
  Packed<A> packed{Scratch<A>(Hk * total * D), Scratch<A>(Hk * total * width)};
  parallel_items(static_cast<int64_t>(batch.sequences.size()) * Hk, [&](int64_t item) {
    const auto& s = batch.sequences[static_cast<size_t>(item / Hk)];
    int64_t head = item % Hk;
    pack_panels<T, A>(k, s.key, s.S, head, packed.panels.get() + (head * total + s.packed_key) * D);
    pack_rows<T, A>(v, s.key, s.S, head, packed.rows.get() + (head * total + s.packed_key) * width);
  });
  return packed;
}

// The running softmax of one tile of queries.
template <class A>
struct Tile {
  Scratch<A> q{0}, scores{0}, out{0};
  A max[kQueryTile], sum[kQueryTile];

  Tile(int64_t width, int64_t D) : q(kQueryTile * D), scores(kQueryTile * kKeyTile), out(kQueryTile * width) {}

  void start(int64_t rows, int64_t width) {
    std::fill_n(max, rows, -std::numeric_limits<A>::infinity());
    std::fill_n(sum, rows, A(0));
    std::fill_n(out.get(), rows * width, A(0));
  }

  // Scores of row r, of which those of `seen` count -> probabilities relative to the new maximum; what was summed
  // before is scaled to it.
  void add_scores(int64_t r, KeyRange seen, int64_t n, int64_t width) {
    A* s = scores.get() + r * kKeyTile;
    std::fill(s, s + seen.first, A(0));
    std::fill(s + seen.last, s + n, A(0));
    if (seen.first == seen.last) return;
    s += seen.first;
    n = seen.last - seen.first;
    A top = greatest(s, n, max[r]);
    A factor = math::exp(max[r] - top);
    sum[r] = sum[r] * factor + exponentials(s, n, top);
    max[r] = top;
    if (factor == A(1)) return;
    A* o = out.get() + r * width;
    for (int64_t d = 0; d < width; ++d) o[d] *= factor;
  }
};

template <class T, class A>
class Forward {
 public:
  Forward(const Tensor& q, const Tensor& k, const Tensor& v, const Ragged& queries, const Ragged& keys,
          const AttentionOptions& options, const Tensor& y, const Tensor& lse)
      : q_(q),
        options_(options),
        batch_(queries, keys, [](int64_t length) { return length > kFewQueries; }),
        H_(q.size(1)),
        Hk_(k.size(1)),
        D_(q.size(2)),
        width_(tile::round_up<A>(D_)) {
    if (batch_.sequences.empty()) return;
    Packed<A> packed = pack<T, A>(k, v, batch_);
    panels_ = packed.panels.get();
    rows_ = packed.rows.get();
    y_ = y.mutable_data<T>();
    lse_ = lse ? lse.mutable_data<A>() : nullptr;
    std::vector<std::pair<size_t, int64_t>> tiles;  // long ones first: they end last
    for (size_t s = 0; s < batch_.sequences.size(); ++s)
      for (int64_t begin = 0; begin < batch_.sequences[s].T; begin += kQueryTile) tiles.emplace_back(s, begin);
    std::reverse(tiles.begin(), tiles.end());
    parallel_items(static_cast<int64_t>(tiles.size()) * H_, [&](int64_t item) {
      auto [s, begin] = tiles[static_cast<size_t>(item / H_)];
      run(batch_.sequences[s], begin, item % H_);
    });
  }

 private:
  using Sequence = typename Batch<A>::Sequence;

  void run(const Sequence& s, int64_t begin, int64_t head) {
    int64_t end = std::min(begin + kQueryTile, s.T), rows = end - begin;
    int64_t first_packed = head / (H_ / Hk_) * batch_.packed_keys + s.packed_key;
    const A* panels = panels_ + first_packed * D_;
    const A* values = rows_ + first_packed * width_;
    Tile<A> tile(width_, D_);
    tile.start(rows, width_);
    load_queries(s.query + begin, rows, head, tile.q.get());
    KeyRange seen = keys_of_tile(begin, end, s.T, s.S, options_);
    for (int64_t key = seen.first / kKeyTile * kKeyTile; key < seen.last; key += kKeyTile) {
      int64_t n = std::min(kKeyTile, seen.last - key);
      A* scores = tile.scores.get();
      tile::product<A>(rows, tile::round_up<A>(n), D_, {tile.q.get(), D_, 1}, panels_from(panels, D_, key), scores,
                       kKeyTile, false);
      for (int64_t r = 0; r < rows; ++r) {
        A* row = scores + r * kKeyTile;
        if (options_.softcap > 0) cap(row, n, static_cast<A>(options_.softcap));
        KeyRange range = visible_keys(begin + r, s.T, s.S, options_.causal, options_.window);
        tile.add_scores(r, within(range, key, n), n, width_);
      }
      tile::product<A>(rows, width_, n, {scores, kKeyTile, 1}, rows_from(values, width_, key), tile.out.get(), width_,
                       true);
    }
    store(tile, s.query + begin, rows, head);
  }

  void load_queries(int64_t first, int64_t rows, int64_t head, A* to) const {
    const T* from = q_.data<T>() + first * q_.strides()[0] + head * q_.strides()[1];
    auto scale = static_cast<A>(options_.scale);
    for (int64_t r = 0; r < rows; ++r, from += q_.strides()[0], to += D_)
      for (int64_t d = 0; d < D_; ++d) to[d] = convert<A>(from[d]) * scale;
  }

  void store(const Tile<A>& tile, int64_t first, int64_t rows, int64_t head) const {
    for (int64_t r = 0; r < rows; ++r) {
      int64_t at = (first + r) * H_ + head;
      A inverse = tile.sum[r] == A(0) ? A(0) : A(1) / tile.sum[r];  // NaN stays NaN
      const A* o = tile.out.get() + r * width_;
      for (int64_t d = 0; d < D_; ++d) y_[at * D_ + d] = convert<T>(o[d] * inverse);
      if (lse_) lse_[at] = tile.max[r] + std::log(tile.sum[r]);
    }
  }

  const Tensor& q_;
  const AttentionOptions& options_;
  Batch<A> batch_;
  int64_t H_, Hk_, D_, width_;
  const A *panels_ = nullptr, *rows_ = nullptr;
  T* y_ = nullptr;
  A* lse_ = nullptr;
};

void attention_cpu(const Tensor& q, const Tensor& k, const Tensor& v, const Ragged& queries, const Ragged& keys,
                   const AttentionOptions& options, const Tensor& y, const Tensor& lse) {
  if (y.numel() == 0) return;
  with_float(q.dtype(), "attention", [&]<class T>() {
    Forward<T, compute_t<T>>(q, k, v, queries, keys, options, y, lse);
    attention_few<T, compute_t<T>>(q, k, v, queries, keys, options, y, lse);
  });
}

Register attention_registered{kernels::attention, Device::Type::cpu, attention_cpu};

}  // namespace
}  // namespace strata
