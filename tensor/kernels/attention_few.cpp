// Plan: keys are cut into chunks of 128; every (sequence, key head, chunk) is one item. It computes the scores of all
// queries of the group, their maximum, sum of exponentials and weighted values; then the chunks of each query are
// joined in order. A query's bits depend on its own keys alone, not on the other queries, sequences or threads. Bound
// by the memory traffic of keys and values.
#include "tensor/kernels/attention_few.h"

#include "tensor/kernels/attention_tiles.h"

namespace strata {
namespace {

using namespace attention_tiles;

constexpr int64_t kChunk = 128;

// out[j] = q . k_j for n keys; four at a time share the loads of q. D is a multiple of the lanes.
template <class A>
void dot_rows(const A* q, const A* keys, int64_t stride, int64_t n, int64_t D, A* out) {
  using V = tile::Vector<A>;
  int64_t j = 0;
  for (; j + 4 <= n; j += 4) {
    const A* k = keys + j * stride;
    V s0{}, s1{}, s2{}, s3{};
    for (int64_t d = 0; d < D; d += tile::kLanes<A>) {
      V x = *reinterpret_cast<const V*>(q + d);
      s0 += x * *reinterpret_cast<const V*>(k + d);
      s1 += x * *reinterpret_cast<const V*>(k + stride + d);
      s2 += x * *reinterpret_cast<const V*>(k + 2 * stride + d);
      s3 += x * *reinterpret_cast<const V*>(k + 3 * stride + d);
    }
    out[j] = sum_of_lanes<A>(s0);
    out[j + 1] = sum_of_lanes<A>(s1);
    out[j + 2] = sum_of_lanes<A>(s2);
    out[j + 3] = sum_of_lanes<A>(s3);
  }
  for (; j < n; ++j) {
    V s{};
    for (int64_t d = 0; d < D; d += tile::kLanes<A>)
      s += *reinterpret_cast<const V*>(q + d) * *reinterpret_cast<const V*>(keys + j * stride + d);
    out[j] = sum_of_lanes<A>(s);
  }
}

// Rows of keys or values as A with whole panels: where they lie if they are that already, else a copy.
template <class T, class A>
struct RowsOf {
  const A* data;
  int64_t stride;
  Scratch<A> copy;

  RowsOf(const Tensor& x, int64_t first, int64_t count, int64_t head)
      : data(nullptr), stride(tile::round_up<A>(x.size(2))), copy(is_direct(x) ? 0 : count * stride) {
    if constexpr (std::is_same_v<T, A>) {
      if (is_direct(x)) {
        stride = x.strides()[0];
        data = x.data<T>() + first * stride + head * x.strides()[1];
        return;
      }
    }
    pack_rows<T, A>(x, first, count, head, copy.get());
    data = copy.get();
  }
  static bool is_direct(const Tensor& x) { return std::is_same_v<T, A> && x.size(2) % tile::kPanel<A> == 0; }
};

template <class T, class A>
class Few {
 public:
  Few(const Tensor& q, const Tensor& k, const Tensor& v, const Ragged& queries, const Ragged& keys,
      const AttentionOptions& options, const Tensor& y, const Tensor& lse)
      : q_(q),
        k_(k),
        v_(v),
        options_(options),
        batch_(queries, keys, [](int64_t length) { return length > 0 && length <= kFewQueries; }),
        H_(q.size(1)),
        Hk_(k.size(1)),
        G_(H_ / Hk_),
        D_(q.size(2)),
        width_(tile::round_up<A>(D_)) {
    if (batch_.sequences.empty()) return;
    list_parts();
    out_ = std::make_unique<Scratch<A>>(rows_ * width_);
    max_.resize(static_cast<size_t>(rows_));
    sum_.resize(static_cast<size_t>(rows_));
    y_ = y.mutable_data<T>();
    lse_ = lse ? lse.mutable_data<A>() : nullptr;
    int64_t work = 0;
    for (const auto& s : batch_.sequences) work += s.T * s.S * H_ * D_;
    auto parts = static_cast<int64_t>(parts_.size());
    int64_t grain = work < kSerialWork ? parts : 1;
    parallel_for(parts, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) run(parts_[static_cast<size_t>(i)]);
    });
    auto groups = static_cast<int64_t>(groups_.size());
    parallel_for(groups, work < kSerialWork ? groups : 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) join(groups_[static_cast<size_t>(i)]);
    });
  }

 private:
  static constexpr int64_t kSerialWork = 1 << 16;  // below, starting the threads costs more than it saves
  struct Part {
    size_t sequence;
    int64_t head, first, last;  // key head, keys
    int64_t row;                // its rows of out_, max_, sum_: T * G
  };
  struct Group {  // the parts of one (sequence, key head), in order
    size_t sequence;
    int64_t head, row, count;
  };

  void list_parts() {
    for (size_t i = 0; i < batch_.sequences.size(); ++i) {
      const auto& s = batch_.sequences[i];
      KeyRange seen = keys_of_tile(0, s.T, s.T, s.S, options_);
      for (int64_t head = 0; head < Hk_; ++head) {
        Group group{i, head, rows_, 0};
        for (int64_t key = seen.first / kChunk * kChunk; key < seen.last; key += kChunk) {
          parts_.push_back({i, head, key, std::min(key + kChunk, seen.last), rows_});
          rows_ += s.T * G_;
          ++group.count;
        }
        groups_.push_back(group);
      }
    }
  }

  void run(const Part& part) {
    const auto& s = batch_.sequences[part.sequence];
    int64_t n = part.last - part.first, rows = s.T * G_;
    RowsOf<T, A> keys(k_, s.key + part.first, n, part.head);
    Scratch<A> query(width_), p(rows * kChunk);
    for (int64_t t = 0; t < s.T; ++t) {
      KeyRange seen = within(visible_keys(t, s.T, s.S, options_.causal, options_.window), part.first, n);
      int64_t count = seen.last - seen.first;
      for (int64_t g = 0; g < G_; ++g) {
        int64_t r = t * G_ + g;
        load_query(s.query + t, part.head * G_ + g, query.get());
        A* scores = p.get() + r * kChunk;
        std::fill_n(scores, n, A(0));
        scores += seen.first;
        dot_rows<A>(query.get(), keys.data + seen.first * keys.stride, keys.stride, count, width_, scores);
        if (options_.softcap > 0) cap(scores, count, static_cast<A>(options_.softcap));
        A top = greatest(scores, count, -std::numeric_limits<A>::infinity());
        max_[static_cast<size_t>(part.row + r)] = top;
        sum_[static_cast<size_t>(part.row + r)] = exponentials(scores, count, top);
      }
    }
    RowsOf<T, A> values(v_, s.key + part.first, n, part.head);
    tile::product<A>(rows, width_, n, {p.get(), kChunk, 1}, rows_from(values.data, values.stride, 0),
                     out_->get() + part.row * width_, width_, false);
  }

  void load_query(int64_t row, int64_t head, A* to) const {
    const T* from = q_.data<T>() + row * q_.strides()[0] + head * q_.strides()[1];
    for (int64_t d = 0; d < D_; ++d) to[d] = convert<A>(from[d]) * static_cast<A>(options_.scale);
    for (int64_t d = D_; d < width_; ++d) to[d] = 0;
  }

  void join(const Group& group) const {
    const auto& s = batch_.sequences[group.sequence];
    int64_t rows = s.T * G_;
    Scratch<A> total(width_);
    for (int64_t r = 0; r < rows; ++r) {
      A top = -std::numeric_limits<A>::infinity(), sum = 0;
      for (int64_t c = 0; c < group.count; ++c) top = std::max(top, max_[at(group, c, rows, r)]);
      int64_t out = (s.query + r / G_) * H_ + group.head * G_ + r % G_;
      std::fill_n(total.get(), width_, A(0));
      for (int64_t c = 0; c < group.count; ++c) {
        size_t i = at(group, c, rows, r);
        if (sum_[i] == 0) continue;
        A factor = math::exp(max_[i] - top);
        sum += sum_[i] * factor;
        const A* o = out_->get() + static_cast<int64_t>(i) * width_;
        for (int64_t d = 0; d < width_; ++d) total.get()[d] += o[d] * factor;
      }
      A inverse = sum == A(0) ? A(0) : A(1) / sum;  // NaN stays NaN
      for (int64_t d = 0; d < D_; ++d) y_[out * D_ + d] = convert<T>(total.get()[d] * inverse);
      if (lse_) lse_[out] = top + std::log(sum);
    }
  }
  static size_t at(const Group& group, int64_t part, int64_t rows, int64_t r) {
    return static_cast<size_t>(group.row + part * rows + r);
  }

  const Tensor &q_, &k_, &v_;
  const AttentionOptions& options_;
  Batch<A> batch_;
  int64_t H_, Hk_, G_, D_, width_;
  std::vector<Part> parts_;
  std::vector<Group> groups_;
  int64_t rows_ = 0;
  std::unique_ptr<Scratch<A>> out_;
  std::vector<A> max_, sum_;
  T* y_ = nullptr;
  A* lse_ = nullptr;
};

}  // namespace

template <class T, class A>
void attention_few(const Tensor& q, const Tensor& k, const Tensor& v, const Ragged& queries, const Ragged& keys,
                   const AttentionOptions& options, const Tensor& y, const Tensor& lse) {
  Few<T, A>(q, k, v, queries, keys, options, y, lse);
}

#define STRATA_FEW(T, A)                                                                                       \
  template void attention_few<T, A>(const Tensor&, const Tensor&, const Tensor&, const Ragged&, const Ragged&, \
                                    const AttentionOptions&, const Tensor&, const Tensor&);
STRATA_FEW(double, double)
STRATA_FEW(float, float)
STRATA_FEW(Half, float)
STRATA_FEW(BFloat16, float)
#undef STRATA_FEW

}  // namespace strata
