// What this program was built from and with, for --version and run.json.
#pragma once

#include <string>

namespace strata::apps {

struct BuildInfo {
  std::string version;       // "0.1.0"
  std::string git_revision;  // "1397d87", "1397d87-dirty", or "" outside a git checkout
  std::string build_type;    // "Release"
  std::string compiler;      // "GNU 12.2.0"
  std::string flags;         // "-O3 -march=native ..."
  std::string cuda;          // "OFF", "ON" or "EMULATE"
};

const BuildInfo& build_info();
/// "strata 0.1.0 (1397d87, Release, GNU 12.2.0, without CUDA)".
std::string version_line();

}  // namespace strata::apps
