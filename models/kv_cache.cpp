#include "models/kv_cache.h"

#include "autograd/ops/copy.h"
#include "tensor/create.h"

namespace strata::models {

KvCache::KvCache(const DecoderConfig& config, int64_t sequences, int64_t capacity, DType dtype)
    : capacity_(capacity), lengths_(static_cast<size_t>(sequences), 0) {
  check(sequences >= 1 && capacity >= 1, "kv cache: needs at least one sequence and one token, got {} and {}",
        sequences, capacity);
  MemoryKindScope kind(MemoryKind::kv_cache);
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    keys_.push_back(empty({sequences * capacity, config.kv_heads, config.head_dim}, {dtype, Device::cpu()}));
    values_.push_back(empty({sequences * capacity, config.kv_heads, config.head_dim}, {dtype, Device::cpu()}));
  }
}

void KvCache::truncate(int64_t sequence, int64_t length) {
  int64_t& now = lengths_[static_cast<size_t>(sequence)];
  check(length >= 0 && length <= now, "kv cache: cannot cut {} tokens to {}", now, length);
  now = length;
}

void KvCache::append(int64_t layer, const Tensor& k, const Tensor& v, const Ragged& rows) {
  check(rows.count() == sequences(), "kv cache: {} sequences given, the cache has {}", rows.count(), sequences());
  for (int64_t s = 0; s < rows.count(); ++s) {
    auto i = static_cast<size_t>(s);
    if (rows.length[i] == 0) continue;
    check(lengths_[i] + rows.length[i] <= capacity_, "kv cache: {} + {} tokens exceed the capacity of {}", lengths_[i],
          rows.length[i], capacity_);
    int64_t to = s * capacity_ + lengths_[i];
    copy_(narrow(keys(layer), 0, to, rows.length[i]), narrow(k, 0, rows.start[i], rows.length[i]));
    copy_(narrow(values(layer), 0, to, rows.length[i]), narrow(v, 0, rows.start[i], rows.length[i]));
  }
}

void KvCache::advance(const Ragged& rows) {
  for (size_t i = 0; i < lengths_.size(); ++i) lengths_[i] += rows.length[i];
}

Ragged KvCache::visible(const Ragged& rows) const {
  Ragged keys;
  for (int64_t s = 0; s < sequences(); ++s) {
    auto i = static_cast<size_t>(s);
    keys.start.push_back(s * capacity_);
    keys.length.push_back(lengths_[i] + rows.length[i]);
  }
  return keys;
}

int64_t KvCache::bytes() const {
  int64_t total = 0;
  for (const Tensor& t : keys_) total += 2 * t.bytes();
  return total;
}

}  // namespace strata::models
