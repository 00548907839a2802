// Block-quantised weights as GGUF stores them: rows of `columns` values cut into blocks; each block has its own scale.
// Q4_0 / Q4_1 / Q5_0 / Q5_1 / Q8_0: 32 values a block; Q4_K / Q5_K / Q6_K: super-blocks of 256 with sub-scales.
// Layouts and formulas: tensor/kernels/quant_blocks.h.
#pragma once

#include "tensor/kernel.h"
#include "tensor/tensor.h"

namespace strata {

enum class QuantType : uint8_t { q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k, q6_k };

const char* quant_type_name(QuantType type);  // as ggml spells it: "Q4_0"
int64_t quant_block_values(QuantType type);   // values a block
int64_t quant_block_bytes(QuantType type);

/// A [rows, columns] matrix; bytes is u8 [rows, columns / block_values * block_bytes], contiguous.
struct QuantizedWeight {
  QuantType type = QuantType::q8_0;
  int64_t rows = 0;
  int64_t columns = 0;
  Tensor bytes;
};

/// x [..., columns] (any float dtype, on the cpu) -> packed rows, with ggml's reference rounding. Types with blocks of
/// 32 only. Throws where a value is not finite or beyond f16's range, naming its row and column.
QuantizedWeight quantize(const Tensor& x, QuantType type);

namespace kernels {

/// y[r - first, :] = values of rows first .. first + y.size(0); y f32 [n, columns], contiguous.
inline constinit Kernel<void(const QuantizedWeight& w, int64_t first, const Tensor& y)> dequantize{"dequantize"};
/// Row ids[i] -> y[i, :]; y f32 [n, columns], contiguous; ids i32 or i64 [n], within [0, rows).
inline constinit Kernel<void(const QuantizedWeight& w, const Tensor& ids, const Tensor& y)> dequantize_rows{
    "dequantize_rows"};
/// y = x w^T for few rows of x, straight from the packed form: x f32 [M, columns], y f32 [M, rows], rows of unit
/// stride. The bits of a row of y depend on neither M nor the number of threads.
inline constinit Kernel<void(const Tensor& x, const QuantizedWeight& w, const Tensor& y)> quantized_matmul{
    "quantized_matmul"};

}  // namespace kernels

}  // namespace strata
