// Checkpoints that survive anything: each is a folder step-XXXXXXXX written under a temporary name, flushed and
// renamed; a checksum tells a damaged one; the newest complete one is found again.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "nn/module.h"
#include "tensor/io/json.h"

namespace strata::optim {

struct Checkpoint {
  int64_t step = 0;
  Json state;                            // what the writer put there: config, schedule, sampler, best metric, ...
  std::vector<nn::NamedTensor> tensors;  // parameters and optimizer state
  std::filesystem::path folder;
  std::vector<std::string> skipped;  // newer checkpoints that were not usable, and why
};

/// Writes root/step-XXXXXXXX and then removes all but the newest `keep` older ones. Throws Error naming the bytes
/// needed when the disk is full; earlier checkpoints stay, nothing temporary is left.
void save_checkpoint(const std::filesystem::path& root, int64_t step, const std::vector<nn::NamedTensor>& tensors,
                     const Json& state, int keep = 2);

/// The newest complete checkpoint below root; nullopt if there is none. Throws Error if there are checkpoints but none
/// is usable, naming each with the reason.
std::optional<Checkpoint> load_newest_checkpoint(const std::filesystem::path& root);

/// Removes what an interrupted save left behind.
void remove_temporary_checkpoints(const std::filesystem::path& root);

}  // namespace strata::optim
