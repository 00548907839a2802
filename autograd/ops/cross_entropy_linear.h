// The loop behind linear_cross_entropy and its quantised sister: logits in chunks of rows, each turned into its loss
// and at once into its gradients, so that [N, V] logits never exist. For the ops' own files.
#pragma once

#include <functional>

#include "tensor/tensor.h"

namespace strata {

/// What the loop needs of a head w [V, C]. Tensors are row-major; logits are f32 (f64 for f64 x).
struct CrossEntropyHead {
  const char* op;
  int64_t classes;
  /// logits [n, V] = x [n, C] w^T.
  std::function<void(const Tensor& x, const Tensor& logits)> logits;
  /// dx [n, C] = dlogits [n, V] w. Empty: the gradient of x is not wanted.
  std::function<void(const Tensor& dlogits, const Tensor& dx)> dx;
  /// dw += dlogits^T x. Empty: not wanted.
  std::function<void(const Tensor& dlogits, const Tensor& x)> add_dw;
};

struct ChunkedCrossEntropy {
  Tensor loss;  // scalar: the sum over counted rows
  Tensor dx;    // [N, C] of x's dtype, d loss / d x; undefined if not wanted
};

/// Checks x [N, C] and targets [N]; rows with an ignored target are left out before the product. Records nothing.
ChunkedCrossEntropy chunked_cross_entropy(const CrossEntropyHead& head, const Tensor& x, const Tensor& targets,
                                          int64_t ignore_index);

/// dy (a scalar) times a gradient kept from the forward pass, in `dtype`. Throws under create_graph.
Tensor scaled_gradient(const char* op, const Tensor& gradient, const Tensor& dy, DType dtype);

/// Throws unless targets is [N] of integers, each in [0, V) or ignored ("<op>: target must be in [0, 10) or -100 ...").
/// -> as i64 on the targets' device, and the host's copy.
struct CheckedTargets {
  Tensor ids;
  std::vector<int64_t> host;
  int64_t counted = 0;
};
CheckedTargets checked_targets(const char* op, const Tensor& targets, int64_t N, int64_t V, int64_t ignore_index);

}  // namespace strata
