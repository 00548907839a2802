#include "autograd/ops/attention.h"

#include <algorithm>
#include <cmath>

#include "autograd/autograd.h"
#include "autograd/ops/copy.h"
#include "autograd/record.h"
#include "tensor/create.h"

namespace strata {

namespace {

void check_inputs(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o) {
  check(q.rank() == 3 && k.rank() == 3 && v.rank() == 3,
        "attention: q, k, v must be [rows, heads, head size], got {}, {}, {}", q.shape(), k.shape(), v.shape());
  check(k.shape() == v.shape(), "attention: k and v must have one shape, got {} and {}", k.shape(), v.shape());
  check(q.size(2) == k.size(2) && q.size(2) > 0, "attention: head sizes differ, got q {} and k {}", q.shape(),
        k.shape());
  check(k.size(1) > 0 && q.size(1) % k.size(1) == 0,
        "attention: query heads must be a multiple of key heads, got {} and {}", q.size(1), k.size(1));
  check(is_floating(q.dtype()) && q.dtype() == k.dtype() && q.dtype() == v.dtype(),
        "attention: q, k, v must have one floating dtype, got {}, {}, {}", dtype_name(q.dtype()), dtype_name(k.dtype()),
        dtype_name(v.dtype()));
  check(q.device() == k.device() && q.device() == v.device(),
        "attention: q, k, v must be on one device, got {}, {}, {}", q.device().name(), k.device().name(),
        v.device().name());
  check(o.window >= 0 && o.softcap >= 0 && o.scale >= 0,
        "attention: window, softcap and scale must not be negative, got {}, {}, {}", o.window, o.softcap, o.scale);
}

void check_rows(const Ragged& r, int64_t rows, const char* what) {
  check(r.start.size() == r.length.size(), "attention: {}: {} starts for {} lengths", what, r.start.size(),
        r.length.size());
  for (size_t s = 0; s < r.start.size(); ++s)
    check(r.start[s] >= 0 && r.length[s] >= 0 && r.start[s] <= rows && r.length[s] <= rows - r.start[s],
          "attention: {} of sequence {} must lie within {} rows, got start {}, length {}", what, s, rows, r.start[s],
          r.length[s]);
}

bool overlaps(const Ragged& r) {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (size_t s = 0; s < r.start.size(); ++s)
    if (r.length[s] > 0) ranges.emplace_back(r.start[s], r.start[s] + r.length[s]);
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].first < ranges[i - 1].second) return true;
  return false;
}

// The kernels want unit stride along the head.
Tensor unit_rows(const Tensor& x) {
  return x.strides()[2] == 1 || x.size(2) == 1 ? x : clone_data(x);
}

Tensor fresh(const Tensor& like, const Ragged& rows) {
  return rows.total() == like.size(0) && !overlaps(rows) ? empty_like(like) : zeros_like(like);
}

}  // namespace

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Ragged& queries, const Ragged& keys,
                 AttentionOptions options) {
  check_inputs(q, k, v, options);
  check(queries.count() == keys.count(), "attention: queries and keys must list the same sequences, got {} and {}",
        queries.count(), keys.count());
  check_rows(queries, q.size(0), "queries");
  check_rows(keys, k.size(0), "keys");
  check(!overlaps(queries), "attention: queries of two sequences must not overlap");
  bool kv_wanted = detail::wants_gradient(k) || detail::wants_gradient(v);
  check(!kv_wanted || !overlaps(keys), "attention: keys of two sequences overlap, so k and v cannot have a gradient");
  if (options.scale == 0) options.scale = 1 / std::sqrt(static_cast<double>(q.size(2)));

  Tensor y = fresh(q, queries);  // [N, H, D]
  Tensor lse;                    // [N, H]
  if (kv_wanted || detail::wants_gradient(q))
    lse = empty({q.size(0), q.size(1)}, {q.dtype() == DType::f64 ? DType::f64 : DType::f32, q.device()});
  kernels::attention(q.device(), unit_rows(q), unit_rows(k), unit_rows(v), queries, keys, options, y, lse);

  return record("attention", y,
                joint({q, k, v},
                      [=, q = saved(q), k = saved(k), v = saved(v), lse = saved(lse), y = saved_output(y)](
                          const Tensor& dy, const std::vector<bool>& needs) -> std::vector<Tensor> {
                        check(!grad_enabled(), "attention: has no second derivative; backward without create_graph");
                        Tensor dq = needs[0] ? fresh(q(), queries) : Tensor();
                        Tensor dk = needs[1] ? fresh(k(), keys) : Tensor();
                        Tensor dv = needs[2] ? fresh(v(), keys) : Tensor();
                        kernels::attention_backward(
                            dy.device(),
                            kernels::AttentionGradients{unit_rows(q()), unit_rows(k()), unit_rows(v()), y(), lse(),
                                                        unit_rows(dy), dq, dk, dv},
                            queries, keys, options);
                        return {dq, dk, dv};
                      }));
}

}  // namespace strata
