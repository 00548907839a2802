#include "tensor/kernels/quant.h"

#include "tensor/kernels/quant_vectors.h"
#include "tensor/parallel.h"

namespace strata {

const char* quant_type_name(QuantType type) {
  constexpr const char* kNames[] = {"Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"};
  return kNames[static_cast<size_t>(type)];
}

int64_t quant_block_values(QuantType type) {
  return quant::with_block(type, []<class Block>() { return int64_t{Block::values}; });
}

int64_t quant_block_bytes(QuantType type) {
  return quant::with_block(type, []<class Block>() { return int64_t{Block::bytes}; });
}

namespace {

constexpr int64_t kGrainValues = 16384;

template <class Block>
void unpack_row(const uint8_t* packed, int64_t columns, float* y) {
  for (int64_t c = 0; c < columns; c += Block::values, packed += Block::bytes)
    for (int part = 0; part < Block::values / quant::kPart; ++part, y += quant::kPart) {
      quant::Lanes values[4];
      quant::unpack<Block>(packed, part, values);
      std::memcpy(y, values, sizeof(values));
    }
}

// Row row_of(i) of w -> row i of y, in parallel over rows.
template <class RowOf>
void unpack_rows(const QuantizedWeight& w, const Tensor& y, RowOf&& row_of) {
  int64_t count = y.size(0), columns = w.columns;
  if (count == 0 || columns == 0) return;
  const uint8_t* packed = w.bytes.data<uint8_t>();
  float* out = y.mutable_data<float>();
  quant::with_block(w.type, [&]<class Block>() {
    int64_t row_bytes = columns / Block::values * Block::bytes;
    parallel_for(count, std::max<int64_t>(1, kGrainValues / columns), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        unpack_row<Block>(packed + row_of(i) * row_bytes, columns, out + i * columns);
    });
  });
}

void dequantize_cpu(const QuantizedWeight& w, int64_t first, const Tensor& y) {
  unpack_rows(w, y, [first](int64_t i) { return first + i; });
}

void dequantize_rows_cpu(const QuantizedWeight& w, const Tensor& ids, const Tensor& y) {
  with_index(ids.dtype(), "dequantize_rows", [&]<class I>() {
    unpack_rows(w, y, [id = ids.data<I>()](int64_t i) { return static_cast<int64_t>(id[i]); });
  });
}

Register dequantize_registered{kernels::dequantize, Device::Type::cpu, dequantize_cpu};
Register dequantize_rows_registered{kernels::dequantize_rows, Device::Type::cpu, dequantize_rows_cpu};

}  // namespace
}  // namespace strata
