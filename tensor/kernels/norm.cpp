#include "tensor/kernels/norm.h"

#include "tensor/create.h"
#include "tensor/kernels/row_math.h"
#include "tensor/parallel.h"

namespace strata {

namespace {

constexpr int64_t kGrain = 1 << 14;

template <class A>
const A* values(const Tensor& t) {
  return t ? t.data<A>() : nullptr;
}
template <class T>
T* writable(const Tensor& t) {
  return t ? t.mutable_data<T>() : nullptr;
}

/// w + offset, or ones: so that the loops have one form.
template <class A>
std::vector<A> scale_of(const Tensor& w, double offset, int64_t C) {
  std::vector<A> scale(static_cast<size_t>(C), A(1));
  if (w) std::transform(w.data<A>(), w.data<A>() + C, scale.begin(), [&](A v) { return v + static_cast<A>(offset); });
  return scale;
}

template <bool centred, class T, class A>
struct Forward {
  const T* x;
  const A *w, *b;
  T* y;
  A *mean, *rstd;
  int64_t C;
  double eps;

  void row(int64_t r) const {
    const T* in = x + r * C;
    T* out = y + r * C;
    double count = static_cast<double>(C);
    A centre = 0;
    if constexpr (centred) {
      centre = static_cast<A>(rows::sum<A>(C, [&](int64_t i) { return convert<A>(in[i]); }) / count);
      mean[r] = centre;
    }
    auto square = [&](int64_t i) {
      A d = convert<A>(in[i]) - centre;
      return d * d;
    };
    A scale = static_cast<A>(1 / std::sqrt(rows::sum<A>(C, square) / count + eps));
    rstd[r] = scale;
    if (b) {
      for (int64_t i = 0; i < C; ++i) out[i] = convert<T>((convert<A>(in[i]) - centre) * scale * w[i] + b[i]);
    } else {
      for (int64_t i = 0; i < C; ++i) out[i] = convert<T>((convert<A>(in[i]) - centre) * scale * w[i]);
    }
  }
};

template <bool centred>
void forward(const char* op, const Tensor& x, const Tensor& w, double offset, const Tensor& b, double eps,
             const Tensor& y, const Tensor& mean, const Tensor& rstd) {
  int64_t R = x.size(0), C = x.size(1);
  with_float(x.dtype(), op, [&]<class T>() {
    using A = compute_t<T>;
    std::vector<A> scale = scale_of<A>(w, offset, C);
    Forward<centred, T, A> all{
        x.data<T>(), scale.data(), values<A>(b), y.mutable_data<T>(), writable<A>(mean), writable<A>(rstd), C, eps};
    parallel_for(R, kGrain / (C + 1), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) all.row(r);
    });
  });
}

template <bool centred, class T, class A>
struct Backward {
  const T *dy, *x;
  const A *w, *mean, *rstd;
  T* dx;
  int64_t C;

  void row(int64_t r, A* dw, A* db) const {
    const T *g = dy + r * C, *in = x + r * C;
    A centre = centred ? mean[r] : A(0), scale = rstd[r];
    auto xhat = [&](int64_t i) { return (convert<A>(in[i]) - centre) * scale; };
    if (dx) {
      double count = static_cast<double>(C);
      auto product = [&](int64_t i) { return convert<A>(g[i]) * w[i] * xhat(i); };
      A along = static_cast<A>(rows::sum<A>(C, product) / count);
      A level = 0;
      if constexpr (centred)
        level = static_cast<A>(rows::sum<A>(C, [&](int64_t i) { return convert<A>(g[i]) * w[i]; }) / count);
      T* out = dx + r * C;
      for (int64_t i = 0; i < C; ++i) out[i] = convert<T>(scale * (convert<A>(g[i]) * w[i] - level - xhat(i) * along));
    }
    if (dw)
      for (int64_t i = 0; i < C; ++i) dw[i] += convert<A>(g[i]) * xhat(i);
    if (db)
      for (int64_t i = 0; i < C; ++i) db[i] += convert<A>(g[i]);
  }
};

/// Partial sums of dw and db over blocks of rows that depend on R alone, then added in order.
template <class A>
class RowSums {
 public:
  RowSums(int64_t R, int64_t C, const Tensor& dw, const Tensor& db)
      : dw_(dw), db_(db), R_(R), C_(C), blocks_(std::min<int64_t>(kBlocks, (R + kLeastRows - 1) / kLeastRows)) {
    Dims shape{blocks_, C};
    if (dw) dw_parts_ = zeros(shape, {dtype_of<A>, dw.device()});
    if (db) db_parts_ = zeros(shape, {dtype_of<A>, db.device()});
  }

  /// row(r, dw partial, db partial) for all rows.
  template <class F>
  void run(F&& row) const {
    A *dw = writable<A>(dw_parts_), *db = writable<A>(db_parts_);
    parallel_for(blocks_, kGrain / (C_ * kLeastRows + 1), [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block)
        for (int64_t r = R_ * block / blocks_; r < R_ * (block + 1) / blocks_; ++r)
          row(r, dw ? dw + block * C_ : nullptr, db ? db + block * C_ : nullptr);
    });
    if (dw_) add_parts(dw, dw_.template mutable_data<A>());
    if (db_) add_parts(db, db_.template mutable_data<A>());
  }

 private:
  static constexpr int64_t kBlocks = 64, kLeastRows = 8;

  void add_parts(const A* parts, A* sum) const {
    std::fill(sum, sum + C_, A(0));
    for (int64_t block = 0; block < blocks_; ++block)
      for (int64_t i = 0; i < C_; ++i) sum[i] += parts[block * C_ + i];
  }

  const Tensor &dw_, &db_;
  Tensor dw_parts_, db_parts_;
  int64_t R_, C_, blocks_;
};

template <bool centred>
void backward(const char* op, const Tensor& dy, const Tensor& x, const Tensor& w, double offset, const Tensor& mean,
              const Tensor& rstd, const Tensor& dx, const Tensor& dw, const Tensor& db) {
  int64_t R = x.size(0), C = x.size(1);
  with_float(x.dtype(), op, [&]<class T>() {
    using A = compute_t<T>;
    std::vector<A> scale = scale_of<A>(w, offset, C);
    Backward<centred, T, A> all{
        dy.data<T>(), x.data<T>(), scale.data(), values<A>(mean), values<A>(rstd), writable<T>(dx), C};
    RowSums<A>(R, C, dw, db).run([&](int64_t r, A* dw_part, A* db_part) { all.row(r, dw_part, db_part); });
  });
}

void rms_norm_cpu(const Tensor& x, const Tensor& w, double offset, double eps, const Tensor& y, const Tensor& rstd) {
  forward<false>("rms_norm", x, w, offset, {}, eps, y, {}, rstd);
}
void layer_norm_cpu(const Tensor& x, const Tensor& w, const Tensor& b, double eps, const Tensor& y, const Tensor& mean,
                    const Tensor& rstd) {
  forward<true>("layer_norm", x, w, 0, b, eps, y, mean, rstd);
}
void rms_norm_backward_cpu(const Tensor& dy, const Tensor& x, const Tensor& w, double offset, const Tensor& rstd,
                           const Tensor& dx, const Tensor& dw) {
  backward<false>("rms_norm_backward", dy, x, w, offset, {}, rstd, dx, dw, {});
}
void layer_norm_backward_cpu(const Tensor& dy, const Tensor& x, const Tensor& w, const Tensor& mean, const Tensor& rstd,
                             const Tensor& dx, const Tensor& dw, const Tensor& db) {
  backward<true>("layer_norm_backward", dy, x, w, 0, mean, rstd, dx, dw, db);
}

Register rms_norm_registered{kernels::rms_norm, Device::Type::cpu, rms_norm_cpu};
Register layer_norm_registered{kernels::layer_norm, Device::Type::cpu, layer_norm_cpu};
Register rms_norm_backward_registered{kernels::rms_norm_backward, Device::Type::cpu, rms_norm_backward_cpu};
Register layer_norm_backward_registered{kernels::layer_norm_backward, Device::Type::cpu, layer_norm_backward_cpu};

}  // namespace
}  // namespace strata
