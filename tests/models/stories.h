// The stories260K model and its golden numbers (tests/data/stories260K, see tests/data/LICENSES.md).
#pragma once

#include <string>
#include <vector>

#include "models/load.h"
#include "tensor/create.h"
#include "tensor/io/json.h"
#include "tensor/io/safetensors.h"

namespace strata::test {

inline std::filesystem::path stories_folder() {
  return std::filesystem::path(STRATA_TEST_DATA) / "stories260K";
}
inline models::LoadedModel load_stories() {
  return models::load_model(stories_folder());
}
inline const Json& stories_golden() {
  static const Json golden = Json::parse_file(stories_folder() / "golden.json");
  return golden;
}

inline std::vector<int32_t> ids_of(const Json& list) {
  std::vector<int32_t> ids;
  for (const Json& id : list.items()) ids.push_back(static_cast<int32_t>(id.as_int()));
  return ids;
}

/// Targets for predicting every token from those before it: [ids 1 .., -100].
inline Tensor next_token_targets(const std::vector<int32_t>& ids) {
  std::vector<int32_t> targets(ids.begin() + 1, ids.end());
  targets.push_back(-100);
  return from_values(targets, {static_cast<int64_t>(targets.size())});
}

/// Greatest |a - b|.
inline double max_difference(const Tensor& a, const Tensor& b) {
  std::vector<double> x = to_vector<double>(a), y = to_vector<double>(b);
  double most = a.shape() == b.shape() ? 0 : 1e300;
  for (size_t i = 0; i < x.size() && i < y.size(); ++i) most = std::max(most, std::abs(x[i] - y[i]));
  return most;
}

inline double max_abs(const Tensor& a) {
  double most = 0;
  for (double v : to_vector<double>(a)) most = std::max(most, std::abs(v));
  return most;
}

}  // namespace strata::test
