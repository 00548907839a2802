#include "apps/common/common_flags.h"

#include <omp.h>

#include "apps/common/build_info.h"
#include "tensor/error.h"

namespace strata::apps {

std::string CommonOptions::resolved_device() const {
  const std::string& cuda = build_info().cuda;
  check<UsageError>(device != "cuda" || cuda != "OFF",
                    "--device: this program is built without CUDA, got cuda; use --device cpu, or build with "
                    "-DSTRATA_CUDA=ON");
  return device == "auto" ? (cuda == "ON" ? "cuda" : "cpu") : device;  // the emulator is never a default
}

void add_common_flags(Flags& flags, CommonOptions& options) {
  flags.section("machine");
  flags.add("--seed", options.seed, "random numbers: the same seed gives the same run");
  flags.add("--device", options.device, "where to compute").one_of({"auto", "cpu", "cuda"});
  flags.add("--threads", options.threads, "CPU threads").at_least(0).default_text("all cores");
  flags.check_after([&options] {
    static_cast<void>(options.resolved_device());
    if (options.threads > 0) omp_set_num_threads(options.threads);
  });
}

}  // namespace strata::apps
