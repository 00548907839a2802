// The file behind --config: flags by name, so that a long command line can be kept and repeated.
//
//   # lora.toml
//   model = "SmolLM2-135M"          # text in quotes, or a bare word
//   lr = 2e-4
//   packing = true
//   targets = ["q_proj", "v_proj"]
//
//   [finetune.lora]                 # only for this command; flags above count for every command
//   rank = 16
//
// That is TOML without dates, nested tables and multi-line texts; an INI file of bare words reads the same way. A
// run.json is accepted too: its "config" holds the flags of that run.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace strata::apps {

struct ConfigEntry {
  std::string section;              // "" before the first [section]
  std::string name;                 // as written: "max-steps" or "max_steps"
  std::vector<std::string> values;  // several for an array, none for an empty one
  std::string place;                // "lora.toml:3", for errors
};

/// Reads every entry. Throws UsageError if the file cannot be read or is malformed (naming the line).
std::vector<ConfigEntry> read_config(const std::filesystem::path& path);

}  // namespace strata::apps
