// Keys and values of past tokens, for generation.
#pragma once

#include <vector>

#include "models/config.h"
#include "tensor/ragged.h"
#include "tensor/tensor.h"

namespace strata::models {

class KvCache {
 public:
  /// Room for `sequences` texts of up to `capacity` tokens each (kind kv_cache in the ledger).
  KvCache(const DecoderConfig& config, int64_t sequences, int64_t capacity, DType dtype = DType::f32);

  int64_t sequences() const { return static_cast<int64_t>(lengths_.size()); }
  int64_t capacity() const { return capacity_; }
  int64_t length(int64_t sequence) const { return lengths_[static_cast<size_t>(sequence)]; }
  /// Forgets the tokens from `length` on (0: everything).
  void truncate(int64_t sequence, int64_t length);

  /// Called by the model for each layer: stores the new rows k, v [N, Hk, D] behind the old ones.
  /// Error if a sequence would not fit.
  void append(int64_t layer, const Tensor& k, const Tensor& v, const Ragged& rows);
  /// After all layers.
  void advance(const Ragged& rows);
  /// [sequences * capacity, Hk, D].
  const Tensor& keys(int64_t layer) const { return keys_[static_cast<size_t>(layer)]; }
  const Tensor& values(int64_t layer) const { return values_[static_cast<size_t>(layer)]; }
  /// Where each sequence's keys lie once `rows` have been appended.
  Ragged visible(const Ragged& rows) const;
  int64_t bytes() const;

 private:
  int64_t capacity_;
  std::vector<int64_t> lengths_;
  std::vector<Tensor> keys_, values_;
};

}  // namespace strata::models
