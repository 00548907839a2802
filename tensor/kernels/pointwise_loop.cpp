#include "tensor/kernels/pointwise_loop.h"

#include <array>
#include <cstring>

#include "tensor/strided.h"

namespace strata::pointwise {
namespace {

constexpr int64_t kBlock = 512;  // elements of one buffer: all operands' together stay in the L1 cache
constexpr int kMaxOperands = 5;

/// n elements between dense `buffer` and a strided place, converted.
using Load = void (*)(const std::byte* from, int64_t step, int64_t n, std::byte* buffer);
using Store = void (*)(const std::byte* buffer, int64_t step, int64_t n, std::byte* to);

template <class T, class B>
void load(const std::byte* from, int64_t step, int64_t n, std::byte* buffer) {
  const T* a = reinterpret_cast<const T*>(from);
  B* b = reinterpret_cast<B*>(buffer);
  if (step == 1) {
    for (int64_t i = 0; i < n; ++i) b[i] = convert<B>(a[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) b[i] = convert<B>(a[i * step]);
  }
}

template <class T, class B>
void store(const std::byte* buffer, int64_t step, int64_t n, std::byte* to) {
  const B* b = reinterpret_cast<const B*>(buffer);
  T* a = reinterpret_cast<T*>(to);
  if (step == 1) {
    for (int64_t i = 0; i < n; ++i) a[i] = convert<T>(b[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) a[i * step] = convert<T>(b[i]);
  }
}

// The same type on both sides: bytes move.
template <size_t size>
void gather(const std::byte* from, int64_t step, int64_t n, std::byte* buffer) {
  for (int64_t i = 0; i < n; ++i) std::memcpy(buffer + i * size, from + i * step * size, size);
}

template <size_t size>
void scatter(const std::byte* buffer, int64_t step, int64_t n, std::byte* to) {
  for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * step * size, buffer + i * size, size);
}

struct Transfer {
  int64_t size;  // bytes of an element in memory
  bool direct;   // the body can work on memory itself where that is dense
  Load load;
  Store store;
};

Transfer transfer(DType dtype, Reduced reduced) {
  if (reduced == Reduced::as_float && dtype == DType::f16) return {2, false, load<Half, float>, store<Half, float>};
  if (reduced == Reduced::as_float && dtype == DType::bf16)
    return {2, false, load<BFloat16, float>, store<BFloat16, float>};
  switch (dtype_size(dtype)) {
    case 8: return {8, true, gather<8>, scatter<8>};
    case 4: return {4, true, gather<4>, scatter<4>};
    case 2: return {2, true, gather<2>, scatter<2>};
    default: return {1, true, gather<1>, scatter<1>};
  }
}

struct Operand {
  std::byte* data;
  Transfer transfer;
};

/// One run of n elements: all of it at once if every operand is dense, else block by block.
template <int count>
void run_row(Body body, const void* functor, int inputs, const std::array<Operand, count>& operands, int64_t n,
             const std::array<int64_t, count>& at, const std::array<int64_t, count>& step) {
  alignas(64) std::byte buffers[count][kBlock * 8];
  std::array<std::byte*, count> place;
  std::array<std::byte*, count> seen;  // what the body gets
  std::array<bool, count> buffered;
  bool any = false;
  for (size_t k = 0; k < count; ++k) {
    const Transfer& t = operands[k].transfer;
    place[k] = operands[k].data + at[k] * t.size;
    buffered[k] = !t.direct || (step[k] != 1 && n > 1);
    any = any || buffered[k];
  }
  int64_t block = any ? kBlock : n;
  for (int64_t i = 0; i < n; i += block) {
    int64_t m = std::min(block, n - i);
    for (size_t k = 0; k < count; ++k) {
      const Transfer& t = operands[k].transfer;
      seen[k] = buffered[k] ? buffers[k] : place[k];
      bool repeated = step[k] == 0 && i > 0;  // still in the buffer
      if (buffered[k] && static_cast<int>(k) < inputs && !repeated) t.load(place[k], step[k], m, buffers[k]);
    }
    body(functor, m, seen.data(), seen.data() + inputs);
    for (size_t k = 0; k < count; ++k) {
      const Transfer& t = operands[k].transfer;
      if (buffered[k] && static_cast<int>(k) >= inputs) t.store(buffers[k], step[k], m, place[k]);
      place[k] += m * step[k] * t.size;
    }
  }
}

template <int count>
void run_all(Body body, const void* functor, std::span<const Tensor> in, std::span<const Tensor> out, Reduced reduced) {
  std::array<Operand, count> operands;
  std::array<Dims, count> strides;
  for (size_t k = 0; k < count; ++k) {
    const Tensor& t = k < in.size() ? in[k] : out[k - in.size()];
    // The body only reads what comes from `in`.
    std::byte* data = k < in.size() ? const_cast<std::byte*>(t.raw_data()) : t.mutable_raw_data();
    operands[k] = {data, transfer(t.dtype(), reduced)};
    strides[k] = t.strides();
  }
  int inputs = static_cast<int>(in.size());
  StridedLoop<count> loop(out[0].shape(), strides);
  loop.for_each_row([&](const std::array<int64_t, count>& at, int64_t n, const std::array<int64_t, count>& step) {
    run_row<count>(body, functor, inputs, operands, n, at, step);
  });
}

}  // namespace

void run(Body body, const void* functor, std::initializer_list<Tensor> in, std::initializer_list<Tensor> out,
         Reduced reduced) {
  if (out.begin()->numel() == 0) return;
  std::span<const Tensor> inputs(in.begin(), in.size()), outputs(out.begin(), out.size());
  switch (in.size() + out.size()) {
    case 2: return run_all<2>(body, functor, inputs, outputs, reduced);
    case 3: return run_all<3>(body, functor, inputs, outputs, reduced);
    case 4: return run_all<4>(body, functor, inputs, outputs, reduced);
    default: return run_all<kMaxOperands>(body, functor, inputs, outputs, reduced);
  }
}

}  // namespace strata::pointwise
