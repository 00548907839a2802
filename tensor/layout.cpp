#include "tensor/layout.h"

namespace strata {

int64_t numel(const Dims& shape) {
  int64_t count = 1;
  for (int64_t size : shape) {
    check(size >= 0, "shape: sizes must be non-negative, got {}", to_string(shape));
    check(!__builtin_mul_overflow(count, size, &count), "shape: too many elements, got {}", to_string(shape));
  }
  return count;
}

std::string to_string(const Dims& dims) {
  std::string text = "[";
  for (int i = 0; i < dims.size(); ++i) text += (i ? ", " : "") + std::to_string(dims[i]);
  return text + "]";
}

int normalize_axis(int64_t axis, int rank, std::string_view op) {
  check(axis >= -rank && axis < rank, "{}: axis must be in [{}, {}), got {}", op, -rank, rank, axis);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Layout Layout::contiguous(const Dims& shape) {
  strata::numel(shape);  // refuses overflow and negative sizes
  Layout layout{shape, Dims::filled(shape.size(), 1), 0};
  for (int i = shape.size() - 2; i >= 0; --i)
    layout.strides[i] = layout.strides[i + 1] * std::max<int64_t>(shape[i + 1], 1);
  return layout;
}

bool Layout::is_contiguous() const {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return true;  // no element: any strides will do
  int64_t expected = 1;
  for (int i = rank() - 1; i >= 0; --i) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

Layout Layout::transpose(int a, int b) const {
  Layout out = *this;
  std::swap(out.shape[a], out.shape[b]);
  std::swap(out.strides[a], out.strides[b]);
  return out;
}

Layout Layout::permute(const Dims& axes) const {
  check(axes.size() == rank(), "permute: expected {} axes, got {}", rank(), axes);
  Layout out{{}, {}, offset};
  std::array<bool, kMaxRank> seen{};
  for (int64_t axis : axes) {
    int i = normalize_axis(axis, rank(), "permute");
    check(!seen[static_cast<size_t>(i)], "permute: axes must be distinct, got {}", axes);
    seen[static_cast<size_t>(i)] = true;
    out.shape.push_back(shape[i]);
    out.strides.push_back(strides[i]);
  }
  return out;
}

Layout Layout::narrow(int axis, int64_t start, int64_t length, int64_t step) const {
  check(step >= 1, "narrow: step must be positive, got {}", step);
  int64_t last = 0;
  bool fits = length >= 0 && start >= 0 && start <= shape[axis];
  if (fits && length > 0) {
    fits = !__builtin_mul_overflow(length - 1, step, &last) && last < shape[axis] - start;
  }
  check(fits, "narrow: [{}, +{} by {}) must lie in axis {} of {}", start, length, step, axis, shape);
  Layout out = *this;
  out.offset += length > 0 ? start * strides[axis] : 0;
  out.shape[axis] = length;
  out.strides[axis] *= step;
  return out;
}

Layout Layout::select(int axis, int64_t index) const {
  check(index >= 0 && index < shape[axis], "select: index must be in [0, {}), got {}", shape[axis], index);
  Layout out = narrow(axis, index, 1);
  out.shape.erase(axis);
  out.strides.erase(axis);
  return out;
}

Layout Layout::unsqueeze(int axis) const {
  Layout out = *this;
  int64_t stride = axis < rank() ? shape[axis] * strides[axis] : 1;
  out.shape.insert(axis, 1);
  out.strides.insert(axis, stride);
  return out;
}

Layout Layout::squeeze(int axis) const {
  check(shape[axis] == 1, "squeeze: axis {} must have size 1, got {}", axis, shape);
  Layout out = *this;
  out.shape.erase(axis);
  out.strides.erase(axis);
  return out;
}

Layout Layout::broadcast_to(const Dims& target) const {
  int extra = target.size() - rank();
  bool fits = extra >= 0;
  Layout out{target, Dims::filled(target.size(), 0), offset};
  for (int i = 0; fits && i < rank(); ++i) {
    if (shape[i] == target[i + extra])
      out.strides[i + extra] = strides[i];
    else
      fits = shape[i] == 1;
  }
  check(fits, "broadcast: {} does not broadcast to {}", shape, target);
  return out;
}

std::optional<Layout> Layout::reshape(const Dims& target) const {
  if (is_contiguous()) {
    Layout out = contiguous(target);
    out.offset = offset;
    return out;
  }
  // Walk groups of old axes that are contiguous among themselves; each must be covered by whole new axes.
  Layout out{target, Dims::filled(target.size(), 0), offset};
  int n = target.size() - 1;
  int o = rank() - 1;
  while (o >= 0) {
    if (shape[o] == 1) {
      --o;
      continue;
    }
    int64_t group = shape[o];
    int64_t stride = strides[o];
    int first = o;
    for (int p = o - 1; p >= 0; --p) {
      if (shape[p] == 1) {
        first = p;
      } else if (strides[p] == stride * group) {
        group *= shape[p];
        first = p;
      } else {
        break;
      }
    }
    int64_t step = stride;
    while (n >= 0 && group % std::max<int64_t>(target[n], 1) == 0 && (group > 1 || target[n] == 1)) {
      out.strides[n] = step;
      step *= target[n];
      group /= target[n];
      --n;
    }
    if (group != 1) return std::nullopt;
    o = first - 1;
  }
  for (; n >= 0; --n)
    if (target[n] != 1) return std::nullopt;
  return out;
}

Dims broadcast_shapes(const Dims& a, const Dims& b, std::string_view op) {
  int rank = std::max(a.size(), b.size());
  Dims out = Dims::filled(rank, 1);
  for (int i = 0; i < rank; ++i) {
    int64_t x = i < rank - a.size() ? 1 : a[i - (rank - a.size())];
    int64_t y = i < rank - b.size() ? 1 : b[i - (rank - b.size())];
    check(x == y || x == 1 || y == 1, "{}: shapes do not broadcast, got {} and {}", op, a, b);
    out[i] = x == 1 ? y : x;
  }
  return out;
}

Dims infer_shape(const Dims& target, int64_t count, std::string_view op) {
  int unknown = -1;
  int64_t known = 1;
  for (int i = 0; i < target.size(); ++i) {
    if (target[i] == -1) {
      check(unknown < 0, "{}: at most one size may be -1, got {}", op, target);
      unknown = i;
    } else {
      check(target[i] >= 0 && !__builtin_mul_overflow(known, target[i], &known), "{}: sizes must fit, got {}", op,
            target);
    }
  }
  Dims out = target;
  if (unknown >= 0 && known > 0 && count % known == 0) out[unknown] = known = count / known;
  check((unknown < 0 || out[unknown] >= 0) && numel(out) == count, "{}: {} elements do not fit shape {}", op, count,
        target);
  return out;
}

}  // namespace strata
