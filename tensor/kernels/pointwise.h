// Element by element: y[i] = f(a[i], ...). Operands have been broadcast to y's shape and may be strided; they share
// one dtype unless noted. f16 and bf16 compute in float. y may be an operand itself (in place). The functions:
// pointwise_functors.h.
#pragma once

#include "tensor/kernel.h"
#include "tensor/tensor.h"

namespace strata::kernels {

using UnaryKernel = Kernel<void(const Tensor& x, const Tensor& y)>;
using BinaryKernel = Kernel<void(const Tensor& a, const Tensor& b, const Tensor& y)>;
using ScalarKernel = Kernel<void(const Tensor& x, double value, const Tensor& y)>;

// Any number; add_scalar and mul_scalar get a whole value for integers.
inline constinit BinaryKernel add{"add"}, sub{"sub"}, mul{"mul"}, maximum{"maximum"}, minimum{"minimum"};
inline constinit ScalarKernel add_scalar{"add_scalar"}, mul_scalar{"mul_scalar"};
// Any dtype -> bool.
inline constinit BinaryKernel equal{"equal"}, less{"less"}, greater{"greater"};
/// y = condition ? a : b; condition is bool, a and b any dtype.
inline constinit Kernel<void(const Tensor& condition, const Tensor& a, const Tensor& b, const Tensor& y)> where{
    "where"};

// Floating dtypes from here on.
inline constinit BinaryKernel div{"div"};
inline constinit ScalarKernel pow{"pow"};
inline constinit UnaryKernel neg{"neg"}, abs{"abs"}, exp{"exp"}, log{"log"}, sqrt{"sqrt"}, rsqrt{"rsqrt"}, sin{"sin"},
    cos{"cos"}, erf{"erf"}, tanh{"tanh"}, sigmoid{"sigmoid"}, relu{"relu"}, silu{"silu"}, gelu{"gelu"},
    gelu_tanh{"gelu_tanh"};
/// y = silu(gate) * up.
inline constinit BinaryKernel swiglu{"swiglu"};

// Derivatives in one pass: (y, dy, dx) for tanh, sigmoid and relu, (x, dy, dx) for the others.
inline constinit BinaryKernel tanh_backward{"tanh_backward"}, sigmoid_backward{"sigmoid_backward"},
    relu_backward{"relu_backward"}, silu_backward{"silu_backward"}, gelu_backward{"gelu_backward"},
    gelu_tanh_backward{"gelu_tanh_backward"};
/// dgate = dy * up * silu'(gate), dup = dy * silu(gate); both contiguous.
inline constinit Kernel<void(const Tensor& dy, const Tensor& gate, const Tensor& up, const Tensor& dgate,
                             const Tensor& dup)>
    swiglu_backward{"swiglu_backward"};

}  // namespace strata::kernels
