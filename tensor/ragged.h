// A batch of sequences of unequal length, laid end to end: row r of sequence s is row start[s] + r. There is no
// padding anywhere: padded, packed and single batches are the same thing to attention.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/error.h"

namespace strata {

struct Ragged {
  std::vector<int64_t> start;
  std::vector<int64_t> length;

  int64_t count() const { return static_cast<int64_t>(start.size()); }
  /// Sequences laid one after the other.
  static Ragged packed(const std::vector<int64_t>& lengths) {
    Ragged r;
    int64_t at = 0;
    for (int64_t n : lengths) {
      check(n >= 0, "ragged: lengths must be non-negative, got {}", n);
      r.start.push_back(at);
      r.length.push_back(n);
      at += n;
    }
    return r;
  }
  int64_t total() const {
    int64_t sum = 0;
    for (int64_t n : length) sum += n;
    return sum;
  }
};

}  // namespace strata
