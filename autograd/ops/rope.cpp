#include "autograd/ops/rope.h"

#include "autograd/record.h"
#include "tensor/create.h"
#include "tensor/kernels/rope.h"

namespace strata {

namespace {

void check_inputs(const Tensor& x, const Tensor& cos, const Tensor& sin, const Tensor& positions) {
  check(x.rank() == 3 && is_floating(x.dtype()),
        "rope: x must be [rows, heads, head size] of a floating dtype, got {} {}", dtype_name(x.dtype()), x.shape());
  check(cos.rank() == 2 && cos.shape() == sin.shape() && 2 * cos.size(1) <= x.size(2),
        "rope: cos and sin must be [positions, R/2] with R <= {}, got {} and {}", x.size(2), cos.shape(), sin.shape());
  check((cos.dtype() == DType::f32 || cos.dtype() == DType::f64) && cos.dtype() == sin.dtype(),
        "rope: cos and sin must be f32 or f64, got {} and {}", dtype_name(cos.dtype()), dtype_name(sin.dtype()));
  check(cos.is_contiguous() && sin.is_contiguous() && positions.is_contiguous(),
        "rope: cos, sin and positions must be contiguous");
  check(positions.rank() == 1 && positions.size(0) == x.size(0), "rope: expected {} positions, got shape {}", x.size(0),
        positions.shape());
  check(x.device() == cos.device() && x.device() == sin.device() && x.device() == positions.device(),
        "rope: all inputs must be on {}", x.device().name());
}

void check_positions(const Tensor& positions, int64_t count) {
  with_index(positions.dtype(), "rope", [&]<class I>() {
    const I* p = positions.data<I>();
    for (int64_t i = 0; i < positions.numel(); ++i)
      check(p[i] >= 0 && p[i] < count, "rope: position must be in [0, {}), got {} in row {}", count, p[i], i);
  });
}

Tensor rotate(const Tensor& x, const Tensor& cos, const Tensor& sin, const Tensor& positions, bool inverse) {
  Tensor y = empty_like(x);
  Tensor rows = x.strides()[2] == 1 || x.size(2) <= 1 ? x : clone_data(x);
  kernels::rope(x.device(), rows, cos, sin, positions, inverse, y);
  return record("rope", y,
                wrt(x, [cos = saved(cos), sin = saved(sin), positions = saved(positions), inverse](const Tensor& dy) {
                  return rotate(dy, cos(), sin(), positions(), !inverse);
                }));
}

}  // namespace

Tensor rope(const Tensor& x, const Tensor& cos, const Tensor& sin, const Tensor& positions) {
  check_inputs(x, cos, sin, positions);
  if (x.device().is_cpu()) check_positions(positions, cos.size(0));
  return rotate(x, cos, sin, positions, false);
}

}  // namespace strata
