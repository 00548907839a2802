// Tensor: a small value, a shared handle on {Storage, Layout, DType, opaque grad meta}.
// Operations, views included, are free functions in autograd/ops so that they can be recorded.
#pragma once

#include <memory>
#include <vector>

#include "tensor/dtype.h"
#include "tensor/layout.h"
#include "tensor/storage.h"

namespace strata {

/// What autograd hangs on a tensor. The tensor layer only owns it.
struct GradMeta {
  virtual ~GradMeta() = default;
};

class Tensor {
 public:
  /// An undefined tensor: every accessor but defined() throws.
  Tensor() = default;
  Tensor(std::shared_ptr<Storage> storage, Layout layout, DType dtype);

  bool defined() const { return impl_ != nullptr; }
  explicit operator bool() const { return defined(); }
  const Layout& layout() const { return impl().layout; }
  const Dims& shape() const { return impl().layout.shape; }
  const Dims& strides() const { return impl().layout.strides; }
  int rank() const { return layout().rank(); }
  /// Size of one axis; negative axes count from the end.
  int64_t size(int64_t axis) const { return shape()[normalize_axis(axis, rank(), "size")]; }
  int64_t numel() const { return impl().numel; }
  DType dtype() const { return impl().dtype; }
  Device device() const { return impl().storage->device(); }
  bool is_contiguous() const { return layout().is_contiguous(); }
  const std::shared_ptr<Storage>& storage() const { return impl().storage; }
  /// Bytes its elements take (not those of the storage).
  int64_t bytes() const { return numel() * dtype_size(dtype()); }

  /// First element; T must be the element type. mutable_data counts a write (see Storage).
  template <class T>
  const T* data() const {
    expect(dtype_of<T>);
    return reinterpret_cast<const T*>(raw_data());
  }
  template <class T>
  T* mutable_data() const {
    expect(dtype_of<T>);
    return reinterpret_cast<T*>(mutable_raw_data());
  }
  const std::byte* raw_data() const;
  std::byte* mutable_raw_data() const;

  /// The single element of a one-element tensor, converted.
  double item() const;

  /// Two handles on the same object (not: equal elements).
  bool same_as(const Tensor& other) const { return impl_ == other.impl_; }
  /// Makes this object (and so every handle on it) refer to other's bytes, layout and dtype; the grad meta stays.
  void rebind(const Tensor& other) const;
  /// Nobody else holds this object or its bytes: they may be written in place unseen.
  bool is_sole_owner() const { return impl_.use_count() == 1 && impl_->storage.use_count() == 1; }
  const void* id() const { return impl_.get(); }

  const std::shared_ptr<GradMeta>& grad_meta() const { return impl().grad_meta; }
  void set_grad_meta(std::shared_ptr<GradMeta> meta) const { impl().grad_meta = std::move(meta); }

 private:
  struct Impl {
    std::shared_ptr<Storage> storage;
    Layout layout;
    DType dtype;
    int64_t numel;
    std::shared_ptr<GradMeta> grad_meta;
  };
  Impl& impl() const;
  void expect(DType dtype) const;

  std::shared_ptr<Impl> impl_;
};

/// Another tensor on the same bytes, without a graph. `layout` must stay within the storage.
Tensor alias(const Tensor& t, const Layout& layout);
inline Tensor alias(const Tensor& t) {
  return alias(t, t.layout());
}

}  // namespace strata
