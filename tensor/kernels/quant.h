// Block-quantised weights as GGUF stores them: rows of `columns` values cut into blocks; each block has its own scale.
// Q4_0 / Q4_1 / Q5_0 / Q5_1 / Q8_0: 32 values a block, q8: w = d q; q4_0: w = d (q - 8); q4_1: w = d q + m (d, m in f16).
// Q4_K / Q5_K / Q6_K: super-blocks of 256. Layouts: ggml's block_* structs, described in docs/formats.md.
#pragma once

#include "tensor/kernel.h"
#include "tensor/tensor.h"

namespace strata {

enum class QuantType : uint8_t { q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k, q6_k };

const char* quant_type_name(QuantType type);
int64_t quant_block_values(QuantType type);  // values a block
int64_t quant_block_bytes(QuantType type);

/// A [rows, columns] matrix; bytes is u8 [rows, columns / block_values * block_bytes].
struct QuantizedWeight {
  QuantType type = QuantType::q8_0;
  int64_t rows = 0;
  int64_t columns = 0;
  Tensor bytes;
};

namespace kernels {

/// y[r - first, :] = values of rows first .. first + y.size(0); y f32 [n, columns].
inline constinit Kernel<void(const QuantizedWeight& w, int64_t first, const Tensor& y)> dequantize{"dequantize"};
/// Row ids[i] -> y[i, :]; y f32 [n, columns], ids i32 or i64.
inline constinit Kernel<void(const QuantizedWeight& w, const Tensor& ids, const Tensor& y)> dequantize_rows{
    "dequantize_rows"};
/// y = x w^T for few rows of x, reading the weight once in its packed form: x f32 [M, columns], y f32 [M, rows].
inline constinit Kernel<void(const Tensor& x, const QuantizedWeight& w, const Tensor& y)> quantized_matmul{
    "quantized_matmul"};

}  // namespace kernels

}  // namespace strata
