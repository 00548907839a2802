// The 32 values of a part as four vectors of eight, for products: quant_blocks.h written for AVX2, or by way of it
// elsewhere. Fused multiply-adds round once where quant_blocks.h rounds twice.
#pragma once

#include "tensor/kernels/quant_blocks.h"
#include "tensor/kernels/tile_product.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include <immintrin.h>
#define STRATA_QUANT_AVX2 1
#endif

namespace strata::quant {

using Lanes = tile::Vector<float>;

#ifdef STRATA_QUANT_AVX2

namespace avx2 {

inline __m256 half(const uint8_t* p) {
  short bits;
  std::memcpy(&bits, p, 2);
  return _mm256_cvtph_ps(_mm_set1_epi16(bits));
}

/// Eight bytes, each widened to 32 bits.
inline __m256i bytes(const uint8_t* p) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}

inline __m256i low(__m256i v) {
  return _mm256_and_si256(v, _mm256_set1_epi32(15));
}
inline __m256i high(__m256i v) {
  return _mm256_srli_epi32(v, 4);
}
inline __m256 number(__m256i v) {
  return _mm256_cvtepi32_ps(v);
}

/// d q + m for 16 bytes of nibbles.
inline void nibbles(const uint8_t* q, __m256 d, __m256 m, Lanes* w) {
  __m256i a = bytes(q), b = bytes(q + 8);
  w[0] = _mm256_fmadd_ps(number(low(a)), d, m);
  w[1] = _mm256_fmadd_ps(number(low(b)), d, m);
  w[2] = _mm256_fmadd_ps(number(high(a)), d, m);
  w[3] = _mm256_fmadd_ps(number(high(b)), d, m);
}

/// The fifth bits of values first .. first + 7, in place.
inline __m256i fifth(uint32_t bits, int first) {
  __m256i index = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(first));
  __m256i bit = _mm256_srlv_epi32(_mm256_set1_epi32(static_cast<int>(bits)), index);
  return _mm256_slli_epi32(_mm256_and_si256(bit, _mm256_set1_epi32(1)), 4);
}

inline void nibbles_and_fifth(const uint8_t* q, const uint8_t* fifth_bits, __m256 d, __m256 m, Lanes* w) {
  uint32_t bits;
  std::memcpy(&bits, fifth_bits, 4);
  __m256i a = bytes(q), b = bytes(q + 8);
  w[0] = _mm256_fmadd_ps(number(_mm256_or_si256(low(a), fifth(bits, 0))), d, m);
  w[1] = _mm256_fmadd_ps(number(_mm256_or_si256(low(b), fifth(bits, 8))), d, m);
  w[2] = _mm256_fmadd_ps(number(_mm256_or_si256(high(a), fifth(bits, 16))), d, m);
  w[3] = _mm256_fmadd_ps(number(_mm256_or_si256(high(b), fifth(bits, 24))), d, m);
}

inline __m256 times(__m256 v, float factor) {
  return _mm256_mul_ps(v, _mm256_set1_ps(factor));
}

}  // namespace avx2

template <class Block>
void unpack(const uint8_t* b, int part, Lanes (&w)[4]);

template <>
inline void unpack<Q4_0>(const uint8_t* b, int, Lanes (&w)[4]) {
  __m256 d = avx2::half(b);
  avx2::nibbles(b + 2, d, avx2::times(d, -8), w);
}

template <>
inline void unpack<Q4_1>(const uint8_t* b, int, Lanes (&w)[4]) {
  avx2::nibbles(b + 4, avx2::half(b), avx2::half(b + 2), w);
}

template <>
inline void unpack<Q5_0>(const uint8_t* b, int, Lanes (&w)[4]) {
  __m256 d = avx2::half(b);
  avx2::nibbles_and_fifth(b + 6, b + 2, d, avx2::times(d, -16), w);
}

template <>
inline void unpack<Q5_1>(const uint8_t* b, int, Lanes (&w)[4]) {
  avx2::nibbles_and_fifth(b + 8, b + 4, avx2::half(b), avx2::half(b + 2), w);
}

template <>
inline void unpack<Q8_0>(const uint8_t* b, int, Lanes (&w)[4]) {
  __m256 d = avx2::half(b);
  for (int i = 0; i < 4; ++i) {
    __m128i q = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(b + 2 + 8 * i));
    w[i] = _mm256_mul_ps(avx2::number(_mm256_cvtepi8_epi32(q)), d);
  }
}

template <>
inline void unpack<Q4_K>(const uint8_t* b, int part, Lanes (&w)[4]) {
  int scale, min;
  k_scale_min(b + 4, part, scale, min);
  __m256 d = avx2::times(avx2::half(b), static_cast<float>(scale));
  __m256 m = avx2::times(avx2::half(b + 2), static_cast<float>(min));
  const uint8_t* q = b + 16 + part / 2 * 32;
  for (int i = 0; i < 4; ++i) {
    __m256i v = avx2::bytes(q + 8 * i);
    w[i] = _mm256_fmsub_ps(avx2::number(part % 2 ? avx2::high(v) : avx2::low(v)), d, m);
  }
}

template <>
inline void unpack<Q5_K>(const uint8_t* b, int part, Lanes (&w)[4]) {
  int scale, min;
  k_scale_min(b + 4, part, scale, min);
  __m256 d = avx2::times(avx2::half(b), static_cast<float>(scale));
  __m256 m = avx2::times(avx2::half(b + 2), static_cast<float>(min));
  const uint8_t* q = b + 48 + part / 2 * 32;
  for (int i = 0; i < 4; ++i) {
    __m256i v = avx2::bytes(q + 8 * i);
    __m256i bit = _mm256_srl_epi32(avx2::bytes(b + 16 + 8 * i), _mm_cvtsi32_si128(part));
    bit = _mm256_slli_epi32(_mm256_and_si256(bit, _mm256_set1_epi32(1)), 4);
    v = _mm256_or_si256(part % 2 ? avx2::high(v) : avx2::low(v), bit);
    w[i] = _mm256_fmsub_ps(avx2::number(v), d, m);
  }
}

template <>
inline void unpack<Q6_K>(const uint8_t* b, int part, Lanes (&w)[4]) {
  int half = part / 4, r = part % 4;
  const uint8_t* q = b + 64 * half + 32 * (r % 2);
  const uint8_t* high = b + 128 + 32 * half;
  const uint8_t* scales = b + 192 + 8 * half + 2 * r;
  __m256 d = avx2::half(b + 208);
  for (int i = 0; i < 4; ++i) {
    __m256i v = avx2::bytes(q + 8 * i);
    __m256i bits = _mm256_srl_epi32(avx2::bytes(high + 8 * i), _mm_cvtsi32_si128(2 * r));
    bits = _mm256_slli_epi32(_mm256_and_si256(bits, _mm256_set1_epi32(3)), 4);
    v = _mm256_or_si256(r >= 2 ? avx2::high(v) : avx2::low(v), bits);
    __m256 ds = avx2::times(d, static_cast<float>(static_cast<int8_t>(scales[i / 2])));
    w[i] = _mm256_mul_ps(avx2::number(_mm256_sub_epi32(v, _mm256_set1_epi32(32))), ds);
  }
}

#else

template <class Block>
inline void unpack(const uint8_t* b, int part, Lanes (&w)[4]) {
  float values[kPart];
  Block::unpack(b, part, values);
  std::memcpy(w, values, sizeof(values));
}

#endif

}  // namespace strata::quant
