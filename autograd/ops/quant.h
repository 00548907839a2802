// Linear layers and embeddings on frozen, block-quantised weights. The weight gets no gradient; x does.
#pragma once

#include "tensor/kernels/quant.h"

namespace strata {

/// All rows as f32 [rows, columns].
Tensor dequantize(const QuantizedWeight& w);
/// x [..., columns] -> x w^T + b, [..., rows], of x's dtype; b [rows] of that dtype or undefined. Few rows of x:
/// straight from the packed form, each row with the same bits whatever their number; many: panels of w are dequantised
/// into a workspace and multiplied. Backward dequantises again: no f32 copy of w is ever kept.
Tensor quantized_linear(const Tensor& x, const QuantizedWeight& w, const Tensor& b = {});
/// ids [...] (i32 or i64) -> f32 [..., columns].
Tensor quantized_embedding(const QuantizedWeight& w, const Tensor& ids);
/// linear_cross_entropy with a quantised w (the gradient of x only).
Tensor quantized_linear_cross_entropy(const Tensor& x, const QuantizedWeight& w, const Tensor& targets,
                                      int64_t ignore_index = -100);

}  // namespace strata
