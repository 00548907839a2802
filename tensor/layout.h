// Layout: shape, strides and offset (in elements), and the algebra of views. A pure value: no data, no dtype.
#pragma once

#include <optional>

#include "tensor/dims.h"

namespace strata {

struct Layout {
  Dims shape;
  Dims strides;
  int64_t offset = 0;

  /// Row-major layout of `shape`.
  static Layout contiguous(const Dims& shape);

  int rank() const { return shape.size(); }
  int64_t numel() const { return strata::numel(shape); }
  bool is_contiguous() const;

  /// Swaps, or reorders all, axes.
  Layout transpose(int a, int b) const;
  Layout permute(const Dims& axes) const;
  /// Elements [start, start + length) of `axis`, every `step`-th.
  Layout narrow(int axis, int64_t start, int64_t length, int64_t step = 1) const;
  /// Removes `axis` by taking its element `index`.
  Layout select(int axis, int64_t index) const;
  /// Inserts / removes an axis of size 1.
  Layout unsqueeze(int axis) const;
  Layout squeeze(int axis) const;
  /// NumPy's broadcasting to `target`: axes of size 1 and missing leading axes get stride 0. Throws if impossible.
  Layout broadcast_to(const Dims& target) const;
  /// The same elements under another shape without moving them; nullopt where strides do not allow it.
  std::optional<Layout> reshape(const Dims& target) const;

  friend bool operator==(const Layout&, const Layout&) = default;
};

/// The shape two operands broadcast to. Throws "<op>: shapes do not broadcast, got [2, 3] and [4]".
Dims broadcast_shapes(const Dims& a, const Dims& b, std::string_view op);
/// Fills in one -1 of `target` so that it has `count` elements. Throws if the counts differ.
Dims infer_shape(const Dims& target, int64_t count, std::string_view op);

}  // namespace strata
