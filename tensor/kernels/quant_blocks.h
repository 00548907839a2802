// ggml's block formats: where the bits lie and what they mean. d, m are f16; q are unsigned unless said otherwise.
//
// type  values  bytes                                                       value
// Q4_0      32  d, q4[16]                                                   d (q - 8)
// Q4_1      32  d, m, q4[16]                                                d q + m
// Q5_0      32  d, high[4], q4[16]                                          d (q - 16)
// Q5_1      32  d, m, high[4], q4[16]                                       d q + m
// Q8_0      32  d, q8[32] (signed)                                          d q
// Q4_K     256  d, dmin, scales[12], q4[128]                                d scale_p q - dmin min_p
// Q5_K     256  d, dmin, scales[12], high[32], q4[128]                      d scale_p q - dmin min_p
// Q6_K     256  q4[128], high[64], scales[16] (signed), d                   d scale_s (q - 32), s every 16 values
//
// q4[16]: byte j holds value j in its low and value j + 16 in its high nibble. The K types pair parts of 32 values the
// same way (Q6_K: parts two apart). A part p is 32 values in order; blocks of 32 have one, super-blocks eight.
// Source: ggml-quants.c, ggml-common.h.
#pragma once

#include <cstdint>
#include <cstring>

#include "tensor/dtype.h"
#include "tensor/kernels/quant.h"

namespace strata::quant {

inline constexpr int kPart = 32;

STRATA_HD inline float half_at(const uint8_t* p) {
  Half h;
  h.bits = static_cast<uint16_t>(p[0] | p[1] << 8);
  return static_cast<float>(h);
}

/// 6-bit scale and min of part p, packed by ggml into 12 bytes.
STRATA_HD inline void k_scale_min(const uint8_t* s, int p, int& scale, int& min) {
  if (p < 4) {
    scale = s[p] & 63;
    min = s[p + 4] & 63;
  } else {
    scale = (s[p + 4] & 15) | (s[p - 4] >> 6) << 4;
    min = s[p + 4] >> 4 | (s[p] >> 6) << 4;
  }
}

// Each type: sizes, and unpack(block, part, y): the 32 values of a part. Every product is exact in f32 (11 bits of d,
// at most 7 of a scale, at most 6 of q), so a fused multiply-add gives the same bits as a product and a sum.

struct Q4_0 {
  static constexpr int values = 32, bytes = 18;
  STRATA_HD static void unpack(const uint8_t* b, int, float* y) {
    float d = half_at(b);
    for (int j = 0; j < 16; ++j) {
      y[j] = d * static_cast<float>((b[2 + j] & 15) - 8);
      y[j + 16] = d * static_cast<float>((b[2 + j] >> 4) - 8);
    }
  }
};

struct Q4_1 {
  static constexpr int values = 32, bytes = 20;
  STRATA_HD static void unpack(const uint8_t* b, int, float* y) {
    float d = half_at(b), m = half_at(b + 2);
    for (int j = 0; j < 16; ++j) {
      y[j] = d * static_cast<float>(b[4 + j] & 15) + m;
      y[j + 16] = d * static_cast<float>(b[4 + j] >> 4) + m;
    }
  }
};

struct Q5_0 {
  static constexpr int values = 32, bytes = 22;
  STRATA_HD static void unpack(const uint8_t* b, int, float* y) {
    float d = half_at(b);
    uint32_t high;
    std::memcpy(&high, b + 2, 4);
    for (int j = 0; j < 16; ++j) {
      int low = static_cast<int>((b[6 + j] & 15u) | ((high >> j) & 1u) << 4);
      int up = static_cast<int>((b[6 + j] >> 4) | ((high >> (j + 16)) & 1u) << 4);
      y[j] = d * static_cast<float>(low - 16);
      y[j + 16] = d * static_cast<float>(up - 16);
    }
  }
};

struct Q5_1 {
  static constexpr int values = 32, bytes = 24;
  STRATA_HD static void unpack(const uint8_t* b, int, float* y) {
    float d = half_at(b), m = half_at(b + 2);
    uint32_t high;
    std::memcpy(&high, b + 4, 4);
    for (int j = 0; j < 16; ++j) {
      int low = static_cast<int>((b[8 + j] & 15u) | ((high >> j) & 1u) << 4);
      int up = static_cast<int>((b[8 + j] >> 4) | ((high >> (j + 16)) & 1u) << 4);
      y[j] = d * static_cast<float>(low) + m;
      y[j + 16] = d * static_cast<float>(up) + m;
    }
  }
};

struct Q8_0 {
  static constexpr int values = 32, bytes = 34;
  STRATA_HD static void unpack(const uint8_t* b, int, float* y) {
    float d = half_at(b);
    for (int j = 0; j < 32; ++j) y[j] = d * static_cast<float>(static_cast<int8_t>(b[2 + j]));
  }
};

struct Q4_K {
  static constexpr int values = 256, bytes = 144;
  STRATA_HD static void unpack(const uint8_t* b, int part, float* y) {
    int scale, min;
    k_scale_min(b + 4, part, scale, min);
    float d = half_at(b) * static_cast<float>(scale), m = half_at(b + 2) * static_cast<float>(min);
    const uint8_t* q = b + 16 + part / 2 * 32;
    int shift = part % 2 * 4;
    for (int j = 0; j < 32; ++j) y[j] = d * static_cast<float>((q[j] >> shift) & 15) - m;
  }
};

struct Q5_K {
  static constexpr int values = 256, bytes = 176;
  STRATA_HD static void unpack(const uint8_t* b, int part, float* y) {
    int scale, min;
    k_scale_min(b + 4, part, scale, min);
    float d = half_at(b) * static_cast<float>(scale), m = half_at(b + 2) * static_cast<float>(min);
    const uint8_t* high = b + 16;
    const uint8_t* q = b + 48 + part / 2 * 32;
    int shift = part % 2 * 4;
    for (int j = 0; j < 32; ++j) {
      int v = ((q[j] >> shift) & 15) | ((high[j] >> part) & 1) << 4;
      y[j] = d * static_cast<float>(v) - m;
    }
  }
};

struct Q6_K {
  static constexpr int values = 256, bytes = 210;
  STRATA_HD static void unpack(const uint8_t* b, int part, float* y) {
    int half = part / 4, r = part % 4;
    const uint8_t* q = b + 64 * half + 32 * (r % 2);
    const uint8_t* high = b + 128 + 32 * half;
    const uint8_t* scales = b + 192 + 8 * half + 2 * r;
    float d = half_at(b + 208);
    int shift = r / 2 * 4, high_shift = 2 * r;
    for (int s = 0; s < 2; ++s) {
      float ds = d * static_cast<float>(static_cast<int8_t>(scales[s]));
      for (int j = 16 * s; j < 16 * s + 16; ++j) {
        int v = ((q[j] >> shift) & 15) | ((high[j] >> high_shift) & 3) << 4;
        y[j] = ds * static_cast<float>(v - 32);
      }
    }
  }
};

/// Calls f.template operator()<Block>() with the block format of a type.
template <class F>
decltype(auto) with_block(QuantType type, F&& f) {
  switch (type) {
    case QuantType::q4_0: return f.template operator()<Q4_0>();
    case QuantType::q4_1: return f.template operator()<Q4_1>();
    case QuantType::q5_0: return f.template operator()<Q5_0>();
    case QuantType::q5_1: return f.template operator()<Q5_1>();
    case QuantType::q8_0: return f.template operator()<Q8_0>();
    case QuantType::q4_k: return f.template operator()<Q4_K>();
    case QuantType::q5_k: return f.template operator()<Q5_K>();
    case QuantType::q6_k: return f.template operator()<Q6_K>();
  }
  fail("quant: unknown type {}", static_cast<int>(type));
}

}  // namespace strata::quant
