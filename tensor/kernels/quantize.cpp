// Packing, as ggml's quantize_row_*_ref does it: the scale comes from the block's extremes, in f32 before it is rounded
// to f16; sums and products are rounded one by one (this file is compiled without contraction). (ggml-quants.c)
#include <cmath>

#include "tensor/create.h"
#include "tensor/kernels/quant_blocks.h"
#include "tensor/parallel.h"

namespace strata {
namespace {

constexpr int kValues = 32;

void put_half(uint8_t* to, float value) {
  Half h(value);
  std::memcpy(to, &h.bits, 2);
}

// 0 where 1 / d overflows: such a d is 0 as f16, and so is everything in the block.
float inverse(float d) {
  return std::fabs(d) > 1e-38f ? 1 / d : 0;
}

uint8_t truncated(float value, int most) {
  return static_cast<uint8_t>(std::min(most, static_cast<int>(value)));
}

// Low nibbles: values 0..15; high nibbles: 16..31; fifth bits by value.
void put_nibbles(const uint8_t* q, uint8_t* to) {
  for (int j = 0; j < 16; ++j) to[j] = static_cast<uint8_t>((q[j] & 15) | (q[j + 16] & 15) << 4);
}
void put_fifth(const uint8_t* q, uint8_t* to) {
  uint32_t bits = 0;
  for (int j = 0; j < kValues; ++j) bits |= static_cast<uint32_t>(q[j] >> 4 & 1) << j;
  std::memcpy(to, &bits, 4);
}

// Symmetric: the value of greatest magnitude (the first of equals) becomes -half.
float symmetric(const float* x, int half, uint8_t* q) {
  float extreme = 0;
  for (int j = 0; j < kValues; ++j)
    if (std::fabs(x[j]) > std::fabs(extreme)) extreme = x[j];
  float d = extreme / static_cast<float>(-half), id = inverse(d);
  for (int j = 0; j < kValues; ++j) q[j] = truncated(x[j] * id + (static_cast<float>(half) + 0.5f), 2 * half - 1);
  return d;
}

struct Range {
  float d, m;
};

// From the least value in `levels` steps to the greatest.
Range affine(const float* x, int levels, uint8_t* q) {
  float low = x[0], top = x[0];
  for (int j = 1; j < kValues; ++j) {
    low = std::min(low, x[j]);
    top = std::max(top, x[j]);
  }
  float d = (top - low) / static_cast<float>(levels), id = inverse(d);
  for (int j = 0; j < kValues; ++j) q[j] = truncated((x[j] - low) * id + 0.5f, levels);
  return {d, low};
}

void pack(quant::Q4_0, const float* x, uint8_t* to) {
  uint8_t q[kValues];
  put_half(to, symmetric(x, 8, q));
  put_nibbles(q, to + 2);
}

void pack(quant::Q4_1, const float* x, uint8_t* to) {
  uint8_t q[kValues];
  Range range = affine(x, 15, q);
  put_half(to, range.d);
  put_half(to + 2, range.m);
  put_nibbles(q, to + 4);
}

void pack(quant::Q5_0, const float* x, uint8_t* to) {
  uint8_t q[kValues];
  put_half(to, symmetric(x, 16, q));
  put_fifth(q, to + 2);
  put_nibbles(q, to + 6);
}

void pack(quant::Q5_1, const float* x, uint8_t* to) {
  uint8_t q[kValues];
  Range range = affine(x, 31, q);
  put_half(to, range.d);
  put_half(to + 2, range.m);
  put_fifth(q, to + 4);
  put_nibbles(q, to + 8);
}

void pack(quant::Q8_0, const float* x, uint8_t* to) {
  float most = 0;
  for (int j = 0; j < kValues; ++j) most = std::max(most, std::fabs(x[j]));
  float d = most / 127, id = inverse(d);
  put_half(to, d);
  for (int j = 0; j < kValues; ++j) to[2 + j] = static_cast<uint8_t>(static_cast<int8_t>(std::round(x[j] * id)));
}

constexpr float kLargest = 65504;  // of f16: what scales and minima are stored as

template <class Block>
void pack_row(const float* x, int64_t row, int64_t columns, uint8_t* to) {
  for (int64_t c = 0; c < columns; ++c)
    check(std::fabs(x[c]) <= kLargest, "quantize: values must be finite and within {}, got {} in row {}, column {}",
          kLargest, x[c], row, c);
  for (int64_t c = 0; c < columns; c += Block::values, to += Block::bytes) pack(Block{}, x + c, to);
}

}  // namespace

QuantizedWeight quantize(const Tensor& x, QuantType type) {
  check(type <= QuantType::q8_0, "quantize: only types with blocks of 32 can be written, got {}",
        quant_type_name(type));
  check(x.rank() >= 1 && is_floating(x.dtype()), "quantize: expected floating [..., columns], got {} {}",
        dtype_name(x.dtype()), x.shape());
  QuantizedWeight w{type, 0, x.size(-1), {}};
  check(w.columns % kValues == 0, "quantize: columns must be a multiple of {}, got shape {}", kValues, x.shape());
  w.rows = w.columns == 0 ? 0 : x.numel() / w.columns;
  Tensor values = x.dtype() == DType::f32 && x.is_contiguous() && x.device().is_cpu() ? x : clone_data(x, DType::f32);
  int64_t row_bytes = w.columns / kValues * quant_block_bytes(type);
  MemoryKindScope kind(MemoryKind::quantized);
  w.bytes = empty({w.rows, row_bytes}, {DType::u8, Device::cpu()});
  const float* from = values.data<float>();
  uint8_t* to = w.bytes.mutable_data<uint8_t>();
  parallel_for(w.rows, 16, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const float* row = from + r * w.columns;
      uint8_t* out = to + r * row_bytes;
      switch (type) {
        case QuantType::q4_0: pack_row<quant::Q4_0>(row, r, w.columns, out); break;
        case QuantType::q4_1: pack_row<quant::Q4_1>(row, r, w.columns, out); break;
        case QuantType::q5_0: pack_row<quant::Q5_0>(row, r, w.columns, out); break;
        case QuantType::q5_1: pack_row<quant::Q5_1>(row, r, w.columns, out); break;
        default: pack_row<quant::Q8_0>(row, r, w.columns, out); break;
      }
    }
  });
  return w;
}

}  // namespace strata
