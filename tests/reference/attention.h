// Attention by its definition: for each query the scores of all keys it sees, their softmax, the weighted values; and
// the derivative of that, term by term. Three loops in double, nothing shared with the kernels.
#pragma once

#include <limits>

#include "tensor/kernels/attention.h"
#include "tests/reference/array.h"

namespace strata::reference {

struct AttentionResult {
  Array y;           // [N, H, D]
  Array dq, dk, dv;  // gradients of sum(y * dy)
};

inline bool sees(int64_t i, int64_t j, int64_t T, int64_t S, const AttentionOptions& o) {
  int64_t newest = o.causal ? S - T + i : S - 1;
  return j <= newest && (o.window == 0 || j > newest - o.window);
}

inline AttentionResult attention(const Array& q, const Array& k, const Array& v, const Array& dy, const Ragged& queries,
                                 const Ragged& keys, const AttentionOptions& o) {
  int64_t H = q.shape[1], D = q.shape[2], group = H / k.shape[1];
  double scale = o.scale == 0 ? 1 / std::sqrt(static_cast<double>(D)) : o.scale;
  AttentionResult out{Array(q.shape), Array(q.shape), Array(k.shape), Array(v.shape)};
  for (size_t s = 0; s < queries.start.size(); ++s)
    for (int64_t h = 0; h < H; ++h)
      for (int64_t i = 0; i < queries.length[s]; ++i) {
        int64_t row = queries.start[s] + i, S = keys.length[s], head = h / group;
        std::vector<double> score(static_cast<size_t>(S)), slope(static_cast<size_t>(S)), p(static_cast<size_t>(S));
        double greatest = -std::numeric_limits<double>::infinity(), sum = 0;
        for (int64_t j = 0; j < S; ++j) {
          if (!sees(i, j, queries.length[s], S, o)) continue;
          double z = 0;
          for (int64_t d = 0; d < D; ++d) z += q.at({row, h, d}) * k.at({keys.start[s] + j, head, d});
          double t = o.softcap > 0 ? std::tanh(z * scale / o.softcap) : 0;
          score[j] = o.softcap > 0 ? o.softcap * t : z * scale;
          slope[j] = scale * (1 - t * t);
          greatest = std::max(greatest, score[j]);
        }
        for (int64_t j = 0; j < S; ++j)
          if (sees(i, j, queries.length[s], S, o)) sum += p[j] = std::exp(score[j] - greatest);
        if (sum == 0) continue;
        double mean = 0;  // sum over j of p_j times the gradient of p_j
        std::vector<double> dp(static_cast<size_t>(S));
        for (int64_t j = 0; j < S; ++j) {
          p[j] /= sum;
          for (int64_t d = 0; d < D; ++d) {
            out.y.at({row, h, d}) += p[j] * v.at({keys.start[s] + j, head, d});
            out.dv.at({keys.start[s] + j, head, d}) += p[j] * dy.at({row, h, d});
            dp[j] += dy.at({row, h, d}) * v.at({keys.start[s] + j, head, d});
          }
          mean += p[j] * dp[j];
        }
        for (int64_t j = 0; j < S; ++j)
          for (int64_t d = 0; d < D; ++d) {
            double dz = p[j] * (dp[j] - mean) * slope[j];
            out.dq.at({row, h, d}) += dz * k.at({keys.start[s] + j, head, d});
            out.dk.at({keys.start[s] + j, head, d}) += dz * q.at({row, h, d});
          }
      }
  return out;
}

}  // namespace strata::reference
