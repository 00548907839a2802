// LoRA adapters in PEFT's file format: adapter_config.json + adapter_model.safetensors.
// Keys: "base_model.model." + module path + ".lora_A.weight" [r, in], ".lora_B.weight" [out, r].
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "models/decoder.h"
#include "nn/lora.h"

namespace strata::models {

struct AdapterConfig {
  std::string base_model;  // base_model_name_or_path
  nn::LoraOptions lora;
  /// Module names ("q_proj": full name or the part after a dot), or one pattern in `target_pattern` that must match
  /// the whole path; "all-linear" there means every linear layer but the head.
  std::vector<std::string> target_modules;
  std::string target_pattern;
  std::vector<std::string> exclude_modules;
  /// Overrides by regular expression on the end of the path; the first match in file order wins.
  std::vector<std::pair<std::string, int64_t>> rank_pattern;
  std::vector<std::pair<std::string, double>> alpha_pattern;

  /// From adapter_config.json. FormatError for anything that would change the result and is not supported; an unknown
  /// field with a value goes to `warnings`.
  static AdapterConfig from_json(const Json& config, std::vector<std::string>& warnings);
  /// Only fields that PEFT 0.9 knows, unless a newer one is used.
  Json to_json() const;
  /// Rank, alpha and scaling of one module.
  nn::LoraOptions options_for(const std::string& module_path) const;
  bool targets(const std::string& module_path) const;
};

/// How many modules of a kind ("q_proj") got an adapter, of how many.
struct TargetCount {
  std::string kind;
  int64_t matched = 0;
  int64_t total = 0;
};

/// Wraps every targeted linear layer in a LoraLinear (A drawn from `seed` and the module's path, B zero) and freezes
/// everything else. Throws UsageError if a target matches nothing, naming it and the nearest real names.
std::vector<TargetCount> add_lora(Decoder& model, const AdapterConfig& config, uint64_t seed);

/// The wrapped layers by path, in model order.
std::vector<std::pair<std::string, nn::LoraLinear*>> lora_layers(Decoder& model);
/// Switches all adapters on or off.
void enable_lora(Decoder& model, bool on);

/// Writes adapter_config.json, adapter_model.safetensors and (what PEFT does not look at) strata_adapter.json with
/// `extra`: template, stop ids, fingerprint of the base.
void save_adapter(Decoder& model, const AdapterConfig& config, const std::filesystem::path& folder,
                  const Json& extra = Json());

struct LoadedAdapter {
  AdapterConfig config;
  std::vector<TargetCount> targets;
  std::vector<std::string> warnings;
  Json extra;  // strata_adapter.json, null if absent
};
/// Adds the adapter in `folder` to a model without adapters. Throws FormatError listing all missing and unexpected
/// keys, or the first shape that does not fit ("the adapter belongs to another base model").
LoadedAdapter load_adapter(Decoder& model, const std::filesystem::path& folder);

/// Adapter tensors by PEFT key.
std::vector<std::pair<std::string, Tensor>> adapter_tensors(Decoder& model);

}  // namespace strata::models
