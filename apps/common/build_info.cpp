#include "apps/common/build_info.h"

#include <fmt/core.h>

#include "strata_build.h"         // written by CMake at configure time
#include "strata_git_revision.h"  // written at each build

namespace strata::apps {

const BuildInfo& build_info() {
  static const BuildInfo info{STRATA_BUILD_VERSION,  STRATA_GIT_REVISION, STRATA_BUILD_TYPE,
                              STRATA_BUILD_COMPILER, STRATA_BUILD_FLAGS,  STRATA_BUILD_CUDA};
  return info;
}

std::string version_line() {
  const BuildInfo& b = build_info();
  const char* cuda = b.cuda == "ON" ? "with CUDA" : b.cuda == "EMULATE" ? "with emulated CUDA" : "without CUDA";
  std::string revision = b.git_revision.empty() ? "" : b.git_revision + ", ";
  return fmt::format("strata {} ({}{}, {}, {})", b.version, revision, b.build_type, b.compiler, cuda);
}

}  // namespace strata::apps
