#include "models/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tensor/error.h"
#include "tensor/random.h"

namespace strata::models {

void SamplingOptions::validate() const {
  check<UsageError>(std::isfinite(temperature) && temperature >= 0, "sampling: temperature must be at least 0, got {}",
                    temperature);
  check<UsageError>(top_p >= 0 && top_p <= 1, "sampling: top_p must be in [0, 1], got {}", top_p);
  check<UsageError>(min_p >= 0 && min_p <= 1, "sampling: min_p must be in [0, 1], got {}", min_p);
  check<UsageError>(std::isfinite(repetition_penalty) && repetition_penalty > 0,
                    "sampling: repetition_penalty must be positive, got {}", repetition_penalty);
}

namespace {

std::vector<float> penalized(std::span<const float> logits, double penalty, std::span<const int32_t> seen) {
  std::vector<float> out(logits.begin(), logits.end());
  if (penalty == 1) return out;
  std::vector<bool> done(out.size());
  for (int32_t id : seen) {
    auto i = static_cast<size_t>(id);
    if (i >= out.size() || done[i]) continue;
    done[i] = true;
    out[i] = static_cast<float>(out[i] > 0 ? out[i] / penalty : out[i] * penalty);
  }
  return out;
}

int32_t most_likely(std::span<const float> logits) {
  size_t best = 0;
  for (size_t i = 1; i < logits.size(); ++i)
    if (logits[i] > logits[best] || std::isnan(logits[best])) best = i;
  return static_cast<int32_t>(best);
}

}  // namespace

std::vector<std::pair<int32_t, double>> candidate_tokens(std::span<const float> raw, const SamplingOptions& options,
                                                         std::span<const int32_t> seen) {
  check(!raw.empty(), "sampling: no logits");
  std::vector<float> logits = penalized(raw, options.repetition_penalty, seen);
  for (float v : logits)
    check(!std::isnan(v), "sampling: logits hold NaN; the model diverged or its weights are damaged");
  if (options.temperature == 0) return {{most_likely(logits), 1.0}};
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  auto better = [&](int32_t a, int32_t b) {
    float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  };
  size_t keep = order.size();
  if (options.top_k > 0) keep = std::min(keep, static_cast<size_t>(options.top_k));
  if (keep < order.size())
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(keep), order.end(), better);
  else
    std::sort(order.begin(), order.end(), better);
  order.resize(keep);
  // The difference to the best, so that a tiny temperature overflows to -inf and never to NaN.
  float best = logits[static_cast<size_t>(order[0])];
  std::vector<std::pair<int32_t, double>> tokens;
  double total = 0;
  for (int32_t id : order) {
    double below = static_cast<double>(logits[static_cast<size_t>(id)]) - static_cast<double>(best);
    double p = std::exp(below == 0 ? 0.0 : below / options.temperature);
    if (!tokens.empty() && (p == 0 || p < options.min_p)) break;  // p is relative to the best one's
    tokens.emplace_back(id, p);
    total += p;
  }
  double sum = 0;
  size_t count = 0;
  while (count < tokens.size()) {
    sum += tokens[count].second;
    ++count;
    if (options.top_p < 1 && sum >= options.top_p * total * (1 - 1e-12)) break;
  }
  tokens.resize(count);
  for (auto& [id, p] : tokens) p /= sum;
  return tokens;
}

int32_t sample_token(std::span<const float> logits, const SamplingOptions& options, int64_t step,
                     std::span<const int32_t> seen) {
  auto tokens = candidate_tokens(logits, options, seen);
  if (tokens.size() == 1) return tokens[0].first;
  Philox4 words = philox_block(options.seed, static_cast<uint64_t>(step));
  double u = (static_cast<double>(words[0]) + static_cast<double>(words[1]) * 0x1p-32) * 0x1p-32;  // [0, 1)
  for (const auto& [id, p] : tokens) {
    if (u < p) return id;
    u -= p;
  }
  return tokens.back().first;
}

}  // namespace strata::models
