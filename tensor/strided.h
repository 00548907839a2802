// Walking several tensors of one shape together: axes are sorted and merged first, so that contiguous operands
// run as one long loop. Used by the CPU kernels of the pointwise, copy and reduce families.
#pragma once

#include <array>
#include <span>

#include "tensor/parallel.h"
#include "tensor/tensor.h"

namespace strata {

/// `count` operands of one shape; strides in elements.
template <int count>
struct StridedLoop {
  Dims shape;                       // merged; never empty (a scalar is [1])
  std::array<Dims, count> strides;  // of each operand, same rank as shape

  StridedLoop(const Dims& full, const std::array<Dims, count>& all) {
    for (int i = 0; i < full.size(); ++i) {
      if (full[i] == 1) continue;
      int last = shape.size() - 1;
      bool merges = last >= 0;
      for (int k = 0; merges && k < count; ++k) merges = strides[k][last] == all[k][i] * full[i];
      if (merges) {
        shape[last] *= full[i];
        for (int k = 0; k < count; ++k) strides[k][last] = all[k][i];
      } else {
        shape.push_back(full[i]);
        for (int k = 0; k < count; ++k) strides[k].push_back(all[k][i]);
      }
    }
    if (shape.empty()) {
      shape.push_back(1);
      for (auto& s : strides) s.push_back(1);
    }
  }

  /// Calls row(offsets, length, inner strides) for every innermost run, in parallel over parts of them.
  template <class F>
  void for_each_row(F&& row, int64_t grain = 16384) const {
    int inner = shape.size() - 1;
    int64_t length = shape[inner];
    int64_t rows = 1;
    for (int i = 0; i < inner; ++i) rows *= shape[i];
    std::array<int64_t, count> step;
    for (int k = 0; k < count; ++k) step[k] = strides[k][inner];
    if (rows == 0 || length == 0) return;
    if (rows == 1) {
      parallel_for(length, grain, [&](int64_t begin, int64_t end) {
        std::array<int64_t, count> at;
        for (int k = 0; k < count; ++k) at[k] = begin * step[k];
        row(at, end - begin, step);
      });
      return;
    }
    parallel_for(rows, std::max<int64_t>(1, grain / length), [&](int64_t begin, int64_t end) {
      std::array<int64_t, kMaxRank> index{};
      int64_t rest = begin;
      std::array<int64_t, count> at{};
      for (int i = inner - 1; i >= 0; --i) {
        index[i] = rest % shape[i];
        rest /= shape[i];
        for (int k = 0; k < count; ++k) at[k] += index[i] * strides[k][i];
      }
      for (int64_t r = begin; r < end; ++r) {
        row(at, length, step);
        for (int i = inner - 1; i >= 0; --i) {  // next index, odometer-wise
          for (int k = 0; k < count; ++k) at[k] += strides[k][i];
          if (++index[i] < shape[i]) break;
          for (int k = 0; k < count; ++k) at[k] -= shape[i] * strides[k][i];
          index[i] = 0;
        }
      }
    });
  }
};

}  // namespace strata
