// Flags that most commands share: --seed, --device, --threads, and --out for those that write a run folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "apps/common/flags.h"

namespace strata::apps {

struct CommonOptions {
  uint64_t seed = 42;
  std::string device = "auto";
  int threads = 0;

  /// "cpu" or "cuda": auto takes cuda where this build has it.
  std::string resolved_device() const;
};

/// Adds the three flags. Parsing throws UsageError for cuda in a build without it, and sets the number of OpenMP
/// threads.
void add_common_flags(Flags& flags, CommonOptions& options);

}  // namespace strata::apps
