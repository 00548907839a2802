// Backward. Plan: rows of q, dy, k and panels of k, v are packed once. A tile (queries of one head x keys) computes its
// scores and probabilities again and adds to dv, dk (of its keys) and dq (of its queries): five products. An item is a
// (sequence, key head) with all its tiles, keys outermost: nothing is shared between items. With too few items for the
// threads, keys and queries become items of their own, once for dk and dv and once for dq: seven products, the same
// sums in the same order, so the bits do not depend on the number of threads.
#include "tensor/kernels/attention.h"
#include "tensor/kernels/attention_tiles.h"

namespace strata {
namespace {

using namespace attention_tiles;

template <class T, class A>
class Backward {
 public:
  Backward(const kernels::AttentionGradients& t, const Ragged& queries, const Ragged& keys,
           const AttentionOptions& options)
      : t_(t),
        o_(options),
        batch_(queries, keys, [](int64_t length) { return length > 0; }),
        H_(t.q.size(1)),
        Hk_(t.k.size(1)),
        G_(H_ / Hk_),
        D_(t.q.size(2)),
        width_(tile::round_up<A>(D_)),
        nq_(batch_.packed_queries),
        nk_(batch_.packed_keys),
        q_(H_ * nq_ * width_),
        dy_(H_ * nq_ * width_),
        dq_(t.dq ? H_ * nq_ * width_ : 0),
        delta_(H_ * nq_),
        k_(Hk_ * nk_ * width_),
        k_panels_(Hk_ * nk_ * D_),
        v_panels_(Hk_ * nk_ * D_) {
    if (t.dq) dq_out_ = t.dq.mutable_data<T>();
    if (t.dk) dk_out_ = t.dk.mutable_data<T>();
    if (t.dv) dv_out_ = t.dv.mutable_data<T>();
    parallel_items(sequences() * Hk_,
                   [&](int64_t i) { pack(batch_.sequences[static_cast<size_t>(i / Hk_)], i % Hk_); });
    if (fused_is_faster())
      run_fused();
    else
      run_split();
  }

 private:
  using Sequence = typename Batch<A>::Sequence;

  // One item's buffers: scores, probabilities (then dz), dy v^T, and the sums for one tile of keys.
  struct Tile {
    Scratch<A> s{kQueryTile * kKeyTile}, p{kQueryTile * kKeyTile}, dp{kQueryTile * kKeyTile};
    Scratch<A> dk, dv;
    explicit Tile(int64_t width) : dk(kKeyTile * width), dv(kKeyTile * width) {}
  };

  int64_t sequences() const { return static_cast<int64_t>(batch_.sequences.size()); }

  // Five products in ceil(items / threads) rounds against seven spread evenly.
  bool fused_is_faster() const {
    int64_t items = sequences() * Hk_, threads = num_threads();
    return 5 * ((items + threads - 1) / threads) * threads <= 7 * items;
  }

  void run_fused() {
    parallel_items(sequences() * Hk_, [&](int64_t item) {
      const Sequence& s = batch_.sequences[static_cast<size_t>(item / Hk_)];
      int64_t head = item % Hk_;
      Tile tile(width_);
      for (int64_t key = 0; key < s.S; key += kKeyTile) keys_tile(tile, s, head, key, t_.dq.defined(), wants_kv());
      if (t_.dq)
        for (int64_t h = head * G_; h < (head + 1) * G_; ++h) store_queries(s, h, 0, s.T);
    });
  }

  void run_split() {
    struct Item {
      size_t sequence;
      int64_t head, begin;
    };
    std::vector<Item> key_items, query_items;
    for (size_t i = 0; i < batch_.sequences.size(); ++i) {
      const Sequence& s = batch_.sequences[i];
      for (int64_t head = 0; wants_kv() && head < Hk_; ++head)
        for (int64_t key = 0; key < s.S; key += kKeyTile) key_items.push_back({i, head, key});
      for (int64_t head = 0; t_.dq && head < H_; ++head)
        for (int64_t begin = 0; begin < s.T; begin += kQueryTile) query_items.push_back({i, head, begin});
    }
    parallel_items(static_cast<int64_t>(key_items.size()), [&](int64_t i) {
      auto [sequence, head, key] = key_items[static_cast<size_t>(i)];
      Tile tile(width_);
      keys_tile(tile, batch_.sequences[sequence], head, key, false, true);
    });
    parallel_items(static_cast<int64_t>(query_items.size()), [&](int64_t i) {
      auto [sequence, head, begin] = query_items[static_cast<size_t>(i)];
      const Sequence& s = batch_.sequences[sequence];
      Tile tile(width_);
      int64_t end = std::min(begin + kQueryTile, s.T);
      KeyRange seen = keys_of_tile(begin, end, s.T, s.S, o_);
      for (int64_t key = seen.first / kKeyTile * kKeyTile; key < seen.last; key += kKeyTile)
        pair(tile, s, head, begin, key, true, false);
      store_queries(s, head, begin, end);
    });
  }

  bool wants_kv() const { return t_.dk.defined() || t_.dv.defined(); }

  // All queries of the group against one tile of keys: head by head, tile by tile.
  void keys_tile(Tile& tile, const Sequence& s, int64_t head, int64_t key, bool dq, bool kv) {
    int64_t n = std::min(kKeyTile, s.S - key);
    std::fill_n(tile.dk.get(), n * width_, A(0));
    std::fill_n(tile.dv.get(), n * width_, A(0));
    for (int64_t h = head * G_; h < (head + 1) * G_; ++h)
      for (int64_t begin = 0; begin < s.T; begin += kQueryTile) pair(tile, s, h, begin, key, dq, kv);
    if (t_.dk) store_keys(tile.dk.get(), static_cast<A>(o_.scale), dk_out_, s.key + key, n, head);
    if (t_.dv) store_keys(tile.dv.get(), A(1), dv_out_, s.key + key, n, head);
  }

  // One tile: queries [begin, ..) of head h against keys [key, ..).
  void pair(Tile& tile, const Sequence& s, int64_t h, int64_t begin, int64_t key, bool dq, bool kv) {
    int64_t end = std::min(begin + kQueryTile, s.T), rows = end - begin;
    KeyRange seen = keys_of_tile(begin, end, s.T, s.S, o_);
    if (seen.last <= key || seen.first >= key + kKeyTile) return;
    int64_t n = std::min(kKeyTile, s.S - key);
    int64_t first_query = h * nq_ + s.packed_query + begin, first_key = h / G_ * nk_ + s.packed_key;
    const A* q = q_.get() + first_query * width_;
    const A* dy = dy_.get() + first_query * width_;
    int64_t panel_columns = tile::round_up<A>(n);
    tile::product<A>(rows, panel_columns, D_, {q, width_, 1}, panels_from(k_panels_.get() + first_key * D_, D_, key),
                     tile.s.get(), kKeyTile, false);
    probabilities(tile, s, h, begin, rows, key, n);
    if (kv && t_.dv)
      tile::product<A>(n, width_, rows, {tile.p.get(), 1, kKeyTile}, rows_from(dy, width_, 0), tile.dv.get(), width_,
                       true);
    if (!dq && !(kv && t_.dk)) return;
    tile::product<A>(rows, panel_columns, D_, {dy, width_, 1}, panels_from(v_panels_.get() + first_key * D_, D_, key),
                     tile.dp.get(), kKeyTile, false);
    score_gradients(tile, first_query, rows, n);
    if (kv && t_.dk)
      tile::product<A>(n, width_, rows, {tile.p.get(), 1, kKeyTile}, rows_from(q, width_, 0), tile.dk.get(), width_,
                       true);
    if (dq)
      tile::product<A>(rows, width_, n, {tile.p.get(), kKeyTile, 1},
                       rows_from(k_.get() + first_key * width_, width_, key), dq_.get() + first_query * width_, width_,
                       true);
  }

  // s = q k^T -> capped scores in s, exp(s - lse) in p, 0 where the mask says so.
  void probabilities(Tile& tile, const Sequence& s, int64_t h, int64_t begin, int64_t rows, int64_t key, int64_t n) {
    const A* lse = t_.lse.data<A>();
    for (int64_t r = 0; r < rows; ++r) {
      A *score = tile.s.get() + r * kKeyTile, *p = tile.p.get() + r * kKeyTile;
      A log_sum = lse[(s.query + begin + r) * H_ + h], scale = static_cast<A>(o_.scale);
      for (int64_t j = 0; j < n; ++j) score[j] *= scale;
      if (o_.softcap > 0) cap(score, n, static_cast<A>(o_.softcap));
      KeyRange seen = within(visible_keys(begin + r, s.T, s.S, o_.causal, o_.window), key, n);
      std::fill(p, p + seen.first, A(0));
      std::fill(p + seen.last, p + n, A(0));
      for (int64_t j = seen.first; j < seen.last; ++j) p[j] = math::exp(score[j] - log_sum);
    }
  }

  // p -> dz = p (dp - delta) (1 - (s / softcap)^2)
  void score_gradients(Tile& tile, int64_t first_query, int64_t rows, int64_t n) const {
    for (int64_t r = 0; r < rows; ++r) {
      A *p = tile.p.get() + r * kKeyTile, delta = delta_.get()[first_query + r];
      const A *dp = tile.dp.get() + r * kKeyTile, *score = tile.s.get() + r * kKeyTile;
      for (int64_t j = 0; j < n; ++j) p[j] *= dp[j] - delta;
      if (o_.softcap > 0) {
        A inverse = A(1) / static_cast<A>(o_.softcap);
        for (int64_t j = 0; j < n; ++j) p[j] *= A(1) - (score[j] * inverse) * (score[j] * inverse);
      }
    }
  }

  void pack(const Sequence& s, int64_t head) {
    int64_t first_key = head * nk_ + s.packed_key;
    pack_rows<T, A>(t_.k, s.key, s.S, head, k_.get() + first_key * width_);
    pack_panels<T, A>(t_.k, s.key, s.S, head, k_panels_.get() + first_key * D_);
    pack_panels<T, A>(t_.v, s.key, s.S, head, v_panels_.get() + first_key * D_);
    for (int64_t h = head * G_; h < (head + 1) * G_; ++h) {
      int64_t first = h * nq_ + s.packed_query;
      pack_rows<T, A>(t_.q, s.query, s.T, h, q_.get() + first * width_);
      pack_rows<T, A>(t_.dy, s.query, s.T, h, dy_.get() + first * width_);
      if (t_.dq) std::fill_n(dq_.get() + first * width_, s.T * width_, A(0));
      for (int64_t i = 0; i < s.T; ++i)
        delta_.get()[first + i] = delta(s.query + i, h, dy_.get() + (first + i) * width_);
    }
  }

  A delta(int64_t row, int64_t h, const A* dy) const {
    const T* y = t_.y.data<T>() + (row * H_ + h) * D_;
    A sum = 0;
    for (int64_t d = 0; d < D_; ++d) sum += dy[d] * convert<A>(y[d]);
    return sum;
  }

  void store_queries(const Sequence& s, int64_t h, int64_t begin, int64_t end) const {
    const A* from = dq_.get() + (h * nq_ + s.packed_query + begin) * width_;
    auto scale = static_cast<A>(o_.scale);
    for (int64_t i = begin; i < end; ++i, from += width_) {
      T* to = dq_out_ + ((s.query + i) * H_ + h) * D_;
      for (int64_t d = 0; d < D_; ++d) to[d] = convert<T>(from[d] * scale);
    }
  }

  void store_keys(const A* from, A scale, T* to, int64_t first, int64_t n, int64_t head) const {
    for (int64_t j = 0; j < n; ++j)
      for (int64_t d = 0; d < D_; ++d)
        to[((first + j) * Hk_ + head) * D_ + d] = convert<T>(from[j * width_ + d] * scale);
  }

  const kernels::AttentionGradients& t_;
  const AttentionOptions& o_;
  Batch<A> batch_;
  int64_t H_, Hk_, G_, D_, width_, nq_, nk_;
  Scratch<A> q_, dy_, dq_, delta_, k_, k_panels_, v_panels_;  // packed: [heads][rows][width] or panels
  T *dq_out_ = nullptr, *dk_out_ = nullptr, *dv_out_ = nullptr;
};

void attention_backward_cpu(const kernels::AttentionGradients& t, const Ragged& queries, const Ragged& keys,
                            const AttentionOptions& options) {
  with_float(t.q.dtype(), "attention", [&]<class T>() { Backward<T, compute_t<T>>(t, queries, keys, options); });
}

Register attention_backward_registered{kernels::attention_backward, Device::Type::cpu, attention_backward_cpu};

}  // namespace
}  // namespace strata
