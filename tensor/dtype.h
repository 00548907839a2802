// Element types. f16 and bf16 are storage types: arithmetic on them happens in float, rounded once to nearest even.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "tensor/error.h"

#if defined(__CUDACC__)
#define STRATA_HD __host__ __device__
#else
#define STRATA_HD
#endif

namespace strata {

enum class DType : uint8_t { f64, f32, f16, bf16, i64, i32, i8, u8, boolean };

/// IEEE binary16.
struct Half {
  uint16_t bits;
  Half() = default;
  STRATA_HD explicit Half(float value) : bits(round_from(value)) {}
  STRATA_HD explicit operator float() const;

 private:
  STRATA_HD static uint16_t round_from(float value);
};

/// The upper half of a binary32.
struct BFloat16 {
  uint16_t bits;
  BFloat16() = default;
  STRATA_HD explicit BFloat16(float value) {
    uint32_t u = std::bit_cast<uint32_t>(value);
    bool nan = (u & 0x7fffffffu) > 0x7f800000u;
    bits = static_cast<uint16_t>(nan ? (u >> 16) | 0x40u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
  STRATA_HD explicit operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

STRATA_HD inline Half::operator float() const {
  // The magic multiplication turns subnormals into normals; exponent 31 is inf/NaN.
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  uint32_t rest = static_cast<uint32_t>(bits & 0x7fffu) << 13;
  float magnitude = std::bit_cast<float>(rest) * std::bit_cast<float>(0x77800000u);  // 2^112
  if ((bits & 0x7c00u) == 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | rest);
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

STRATA_HD inline uint16_t Half::round_from(float value) {
  uint32_t u = std::bit_cast<uint32_t>(value);
  uint32_t sign = (u >> 16) & 0x8000u;
  uint32_t a = u & 0x7fffffffu;
  if (a > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | ((a >> 13) & 0x3ffu));  // NaN
  if (a >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);                        // rounds to infinity
  if (a < 0x38800000u) {  // subnormal or zero: adding 0.5 aligns the mantissa to units of 2^-24, the FPU rounds
    float shifted = std::bit_cast<float>(a) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  return static_cast<uint16_t>(sign | ((a - 0x38000000u + 0xfffu + ((a >> 13) & 1u)) >> 13));
}

/// Bytes of one element.
constexpr int64_t dtype_size(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64: return 8;
    case DType::f32:
    case DType::i32: return 4;
    case DType::f16:
    case DType::bf16: return 2;
    default: return 1;
  }
}

constexpr std::string_view dtype_name(DType dtype) {
  switch (dtype) {
    case DType::f64: return "f64";
    case DType::f32: return "f32";
    case DType::f16: return "f16";
    case DType::bf16: return "bf16";
    case DType::i64: return "i64";
    case DType::i32: return "i32";
    case DType::i8: return "i8";
    case DType::u8: return "u8";
    case DType::boolean: return "bool";
  }
  return "?";
}

constexpr bool is_floating(DType dtype) {
  return dtype <= DType::bf16;
}
constexpr bool is_reduced(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16;
}

template <class T>
struct dtype_of_impl;
template <>
struct dtype_of_impl<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct dtype_of_impl<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct dtype_of_impl<Half> {
  static constexpr DType value = DType::f16;
};
template <>
struct dtype_of_impl<BFloat16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct dtype_of_impl<int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct dtype_of_impl<int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct dtype_of_impl<int8_t> {
  static constexpr DType value = DType::i8;
};
template <>
struct dtype_of_impl<uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct dtype_of_impl<bool> {
  static constexpr DType value = DType::boolean;
};
template <class T>
constexpr DType dtype_of = dtype_of_impl<std::remove_cv_t<T>>::value;

/// The type arithmetic happens in: float for f16 and bf16, the type itself otherwise.
template <class T>
using compute_t = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

template <class To, class From>
STRATA_HD inline To convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
    return convert<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From{};
  } else {
    return static_cast<To>(value);
  }
}

/// Calls f.template operator()<T>() with the element type. `op` names the caller in the error.
template <class F>
decltype(auto) with_float(DType dtype, std::string_view op, F&& f) {
  switch (dtype) {
    case DType::f64: return f.template operator()<double>();
    case DType::f32: return f.template operator()<float>();
    case DType::f16: return f.template operator()<Half>();
    case DType::bf16: return f.template operator()<BFloat16>();
    default: fail("{}: expected a floating dtype, got {}", op, dtype_name(dtype));
  }
}

template <class F>
decltype(auto) with_dtype(DType dtype, std::string_view op, F&& f) {
  switch (dtype) {
    case DType::i64: return f.template operator()<int64_t>();
    case DType::i32: return f.template operator()<int32_t>();
    case DType::i8: return f.template operator()<int8_t>();
    case DType::u8: return f.template operator()<uint8_t>();
    case DType::boolean: return f.template operator()<bool>();
    default: return with_float(dtype, op, std::forward<F>(f));
  }
}

template <class F>
decltype(auto) with_index(DType dtype, std::string_view op, F&& f) {
  switch (dtype) {
    case DType::i64: return f.template operator()<int64_t>();
    case DType::i32: return f.template operator()<int32_t>();
    default: fail("{}: indices must be i32 or i64, got {}", op, dtype_name(dtype));
  }
}

}  // namespace strata
