#include "tensor/tensor.h"

#include <cassert>

namespace strata {

namespace {

// Highest element a layout reaches, relative to the storage's start; -1 if it has no element.
int64_t last_element(const Layout& layout) {
  if (layout.numel() == 0) return -1;
  int64_t last = layout.offset;
  for (int i = 0; i < layout.rank(); ++i) last += (layout.shape[i] - 1) * layout.strides[i];
  return last;
}

}  // namespace

Tensor::Tensor(std::shared_ptr<Storage> storage, Layout layout, DType dtype) {
  int64_t count = layout.numel();
  int64_t available = storage->bytes() / dtype_size(dtype);
  check(layout.offset >= 0 && last_element(layout) < available, "tensor: layout {} with strides {} leaves its storage",
        layout.shape, layout.strides);
  impl_ = std::make_shared<Impl>(Impl{std::move(storage), layout, dtype, count, nullptr});
}

Tensor::Impl& Tensor::impl() const {
  check(impl_ != nullptr, "tensor: undefined tensor used");
  return *impl_;
}

void Tensor::expect(DType dtype) const {
  check(impl().dtype == dtype, "data: expected element type {}, got {}", dtype_name(dtype), dtype_name(impl().dtype));
}

const std::byte* Tensor::raw_data() const {
  return impl().storage->data() + impl().layout.offset * dtype_size(impl().dtype);
}

std::byte* Tensor::mutable_raw_data() const {
  return impl().storage->mutable_data() + impl().layout.offset * dtype_size(impl().dtype);
}

void Tensor::rebind(const Tensor& other) const {
  const Impl& from = other.impl();
  impl() = Impl{from.storage, from.layout, from.dtype, from.numel, std::move(impl().grad_meta)};
}

double Tensor::item() const {
  check(numel() == 1, "item: expected one element, got shape {}", shape());
  check(device().is_cpu(), "item: copy the tensor to the cpu first, got {}", device().name());
  return with_dtype(dtype(), "item", [&]<class T>() { return convert<double>(*data<T>()); });
}

Tensor alias(const Tensor& t, const Layout& layout) {
  return Tensor(t.storage(), layout, t.dtype());
}

}  // namespace strata
