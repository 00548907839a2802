// The functions of the pointwise family, written once for every device: each maps elements in the compute type
// (float for f16 and bf16). T is double or float unless noted; "any number" includes the integers.
#pragma once

#include <type_traits>

#include "tensor/kernels/fast_math.h"

namespace strata::functors {

/// Integers wrap around instead of overflowing.
template <class T>
using wrapping_t =
    typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;

// Any number.
struct Add {
  template <class T>
  STRATA_HD T operator()(T a, T b) const {
    return static_cast<T>(static_cast<wrapping_t<T>>(a) + static_cast<wrapping_t<T>>(b));
  }
};
struct Sub {
  template <class T>
  STRATA_HD T operator()(T a, T b) const {
    return static_cast<T>(static_cast<wrapping_t<T>>(a) - static_cast<wrapping_t<T>>(b));
  }
};
struct Mul {
  template <class T>
  STRATA_HD T operator()(T a, T b) const {
    return static_cast<T>(static_cast<wrapping_t<T>>(a) * static_cast<wrapping_t<T>>(b));
  }
};
/// NaN if either is.
struct Maximum {
  template <class T>
  STRATA_HD T operator()(T a, T b) const {
    return a != a || a > b ? a : b;
  }
};
struct Minimum {
  template <class T>
  STRATA_HD T operator()(T a, T b) const {
    return a != a || a < b ? a : b;
  }
};
struct Equal {
  template <class T>
  STRATA_HD bool operator()(T a, T b) const {
    return a == b;
  }
};
struct Less {
  template <class T>
  STRATA_HD bool operator()(T a, T b) const {
    return a < b;
  }
};
struct Greater {
  template <class T>
  STRATA_HD bool operator()(T a, T b) const {
    return a > b;
  }
};

/// T is any element type, f16 and bf16 as they are.
struct Where {
  template <class T>
  STRATA_HD T operator()(bool condition, T a, T b) const {
    return condition ? a : b;
  }
};

struct Div {
  template <class T>
  STRATA_HD T operator()(T a, T b) const {
    return a / b;
  }
};

struct Neg {
  template <class T>
  STRATA_HD T operator()(T x) const {
    return -x;
  }
};
struct Abs {
  template <class T>
  STRATA_HD T operator()(T x) const {
    return std::abs(x);
  }
};
struct Exp {
  template <class T>
  STRATA_HD T operator()(T x) const {
    return math::exp(x);
  }
};
struct Log {
  template <class T>
  STRATA_HD T operator()(T x) const {
    return math::log(x);
  }
};
struct Sqrt {
  template <class T>
  STRATA_HD T operator()(T x) const {
    return std::sqrt(x);
  }
};
struct Rsqrt {
  template <class T>
  STRATA_HD T operator()(T x) const {
    return T(1) / std::sqrt(x);
  }
};
struct Sin {
  template <class T>
  STRATA_HD T operator()(T x) const {
    return std::sin(x);
  }
};
struct Cos {
  template <class T>
  STRATA_HD T operator()(T x) const {
    return std::cos(x);
  }
};
struct Erf {
  template <class T>
  STRATA_HD T operator()(T x) const {
    return math::erf(x);
  }
};
struct Tanh {
  template <class T>
  STRATA_HD T operator()(T x) const {
    return math::tanh(x);
  }
};
struct Sigmoid {
  template <class T>
  STRATA_HD T operator()(T x) const {
    return math::sigmoid(x);
  }
};
/// NaN stays NaN.
struct Relu {
  template <class T>
  STRATA_HD T operator()(T x) const {
    return x < T(0) ? T(0) : x;
  }
};
struct Silu {
  template <class T>
  STRATA_HD T operator()(T x) const {
    return x / (T(1) + math::exp(-x));
  }
};
/// x Phi(x), Phi(x) = (1 + erf(x / sqrt 2)) / 2.
struct Gelu {
  template <class T>
  STRATA_HD T operator()(T x) const {
    return x * T(0.5) * (T(1) + math::erf(x * T(0.70710678118654752440)));
  }
};
/// x (1 + tanh u) / 2, u = sqrt(2 / pi) (x + 0.044715 x^3).
struct GeluTanh {
  template <class T>
  STRATA_HD T operator()(T x) const {
    T u = T(0.79788456080286535588) * (x + T(0.044715) * x * x * x);
    return x * T(0.5) * (T(1) + math::tanh(u));
  }
};

/// x + value, x * value, x^value with one value for all elements.
struct AddScalar {
  double value;
  template <class T>
  STRATA_HD T operator()(T x) const {
    return Add{}(x, static_cast<T>(value));
  }
};
struct MulScalar {
  double value;
  template <class T>
  STRATA_HD T operator()(T x) const {
    return Mul{}(x, static_cast<T>(value));
  }
};
struct Pow {
  double exponent;
  template <class T>
  STRATA_HD T operator()(T x) const {
    return std::pow(x, static_cast<T>(exponent));
  }
};

struct Swiglu {
  template <class T>
  STRATA_HD T operator()(T gate, T up) const {
    return Silu{}(gate)*up;
  }
};

// Derivatives times dy. (output y, dy) where that is enough, else (input x, dy).
struct TanhBackward {
  template <class T>
  STRATA_HD T operator()(T y, T dy) const {
    return dy * (T(1) - y * y);
  }
};
struct SigmoidBackward {
  template <class T>
  STRATA_HD T operator()(T y, T dy) const {
    return dy * y * (T(1) - y);
  }
};
struct ReluBackward {
  template <class T>
  STRATA_HD T operator()(T y, T dy) const {
    return y > T(0) ? dy : T(0);
  }
};
/// sigma(x) (1 + x (1 - sigma(x))).
struct SiluBackward {
  template <class T>
  STRATA_HD T operator()(T x, T dy) const {
    T s = math::sigmoid(x);
    return dy * s * (T(1) + x * (T(1) - s));
  }
};
/// Phi(x) + x phi(x), phi the density of N(0, 1).
struct GeluBackward {
  template <class T>
  STRATA_HD T operator()(T x, T dy) const {
    T cdf = T(0.5) * (T(1) + math::erf(x * T(0.70710678118654752440)));
    T pdf = T(0.39894228040143267794) * math::exp(T(-0.5) * x * x);
    return dy * (cdf + x * pdf);
  }
};
struct GeluTanhBackward {
  template <class T>
  STRATA_HD T operator()(T x, T dy) const {
    T t = math::tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x));
    T du = T(0.79788456080286535588) * (T(1) + T(3 * 0.044715) * x * x);
    return dy * T(0.5) * (T(1) + t + x * (T(1) - t * t) * du);
  }
};

}  // namespace strata::functors
