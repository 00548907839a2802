#include <algorithm>
#include <regex>
#include <set>

#include "models/adapters.h"

namespace strata::models {

namespace {

// Fields without effect on what the adapter computes.
const std::set<std::string, std::less<>> kHarmless = {
    "auto_mapping", "base_model_name_or_path", "inference_mode",    "task_type",      "revision",       "peft_version",
    "loftq_config", "megatron_config",         "megatron_core",     "runtime_config", "layers_pattern", "eva_config",
    "corda_config", "ensure_weight_tying",     "qalora_group_size", "enable_lora",    "merge_weights"};
const std::set<std::string, std::less<>> kRead = {
    "peft_type",       "r",          "lora_alpha",   "lora_dropout",  "target_modules",
    "exclude_modules", "use_rslora", "rank_pattern", "alpha_pattern", "init_lora_weights"};
// Fields that change the result; this reader handles their default only.
const std::set<std::string, std::less<>> kUnsupported = {"bias",
                                                         "fan_in_fan_out",
                                                         "layer_replication",
                                                         "layers_to_transform",
                                                         "lora_bias",
                                                         "modules_to_save",
                                                         "use_dora",
                                                         "use_qalora",
                                                         "alora_invocation_tokens",
                                                         "trainable_token_indices",
                                                         "target_parameters",
                                                         "arrow_config"};

bool has_no_effect(const Json& value) {
  if (value.is_null() || (value.is_bool() && !value.as_bool())) return true;
  if (value.is_object() || value.is_array()) return value.size() == 0;
  return value.is_string() && (value.as_string() == "none" || value.as_string().empty());
}

std::vector<std::string> names_of(const Json& config, const char* key) {
  std::vector<std::string> names;
  const Json* list = config.find(key);
  if (!list || list->is_null()) return names;
  for (const Json& name : list->items()) {
    check<FormatError>(name.is_string(), "{}: field '{}' must list strings, got {}", config.source(), key,
                       name.kind_name());
    names.push_back(name.as_string());
  }
  return names;
}

bool names_match(const std::string& path, const std::string& name) {
  return path == name || path.ends_with("." + name);
}

std::regex pattern_regex(const std::string& pattern) {
  try {
    return std::regex(pattern);
  } catch (const std::regex_error& e) {
    fail<FormatError>("adapter_config.json: '{}' is not a regular expression this reader understands: {}", pattern,
                      e.what());
  }
}

// PEFT: the pattern must match the whole path or its end after a dot.
bool pattern_matches(const std::string& path, const std::string& pattern) {
  return std::regex_match(path, pattern_regex("(.*\\.)?(" + pattern + ")"));
}

void check_initialisation(const Json& config) {
  const Json* init = config.find("init_lora_weights");
  if (!init || !init->is_string()) return;
  const std::string& kind = init->as_string();
  bool plain = kind == "gaussian" || kind == "eva" || kind == "orthogonal";
  check<FormatError>(plain, "{}: field 'init_lora_weights': '{}' changes the base weights and is not supported",
                     config.source(), kind);
}

}  // namespace

AdapterConfig AdapterConfig::from_json(const Json& config, std::vector<std::string>& warnings) {
  AdapterConfig c;
  std::string type = config.get<std::string>("peft_type");
  check<FormatError>(type == "LORA", "{}: field 'peft_type' must be LORA, got '{}'", config.source(), type);
  for (const auto& [key, value] : config.members()) {
    if (kRead.contains(key) || kHarmless.contains(key) || has_no_effect(value)) continue;
    check<FormatError>(!kUnsupported.contains(key), "{}: field '{}' = {} is not supported", config.source(), key,
                       value.dump().substr(0, 80));
    warnings.push_back(fmt::format("adapter_config.json: field '{}' is not known and was ignored", key));
  }
  check_initialisation(config);
  c.base_model = config.get_or<std::string>("base_model_name_or_path", "");
  c.lora.r = config.get<int64_t>("r");
  check<FormatError>(c.lora.r >= 1 && c.lora.r <= 65536, "{}: field 'r' must be between 1 and 65536, got {}",
                     config.source(), c.lora.r);
  c.lora.alpha = config.get<double>("lora_alpha");
  c.lora.dropout = config.get_or<double>("lora_dropout", 0.0);
  check<FormatError>(c.lora.dropout >= 0 && c.lora.dropout < 1, "{}: field 'lora_dropout' must be in [0, 1), got {}",
                     config.source(), c.lora.dropout);
  c.lora.use_rslora = config.get_or<bool>("use_rslora", false);
  const Json& targets = config.at("target_modules");
  if (targets.is_string())
    c.target_pattern = targets.as_string();
  else
    c.target_modules = names_of(config, "target_modules");
  const Json* exclude = config.find("exclude_modules");
  if (exclude && exclude->is_string())
    c.exclude_modules = {exclude->as_string()};
  else
    c.exclude_modules = names_of(config, "exclude_modules");
  if (const Json* ranks = config.find("rank_pattern"); ranks && ranks->is_object())
    for (const auto& [pattern, r] : ranks->members()) c.rank_pattern.emplace_back(pattern, r.as_int());
  if (const Json* alphas = config.find("alpha_pattern"); alphas && alphas->is_object())
    for (const auto& [pattern, alpha] : alphas->members()) c.alpha_pattern.emplace_back(pattern, alpha.as_double());
  return c;
}

Json AdapterConfig::to_json() const {
  Json j = Json::object();
  Json ranks = Json::object(), alphas = Json::object(), targets = Json::array();
  for (const auto& [pattern, r] : rank_pattern) ranks.set(pattern, r);
  for (const auto& [pattern, alpha] : alpha_pattern) alphas.set(pattern, alpha);
  for (const std::string& name : target_modules) targets.push(name);
  bool whole = lora.alpha == static_cast<double>(static_cast<int64_t>(lora.alpha));
  j.set("alpha_pattern", alphas).set("auto_mapping", Json()).set("base_model_name_or_path", base_model);
  j.set("bias", "none").set("fan_in_fan_out", false).set("inference_mode", true).set("init_lora_weights", true);
  j.set("layers_pattern", Json()).set("layers_to_transform", Json()).set("loftq_config", Json::object());
  j.set("lora_alpha", whole ? Json(static_cast<int64_t>(lora.alpha)) : Json(lora.alpha));
  j.set("lora_dropout", lora.dropout).set("megatron_config", Json()).set("megatron_core", "megatron.core");
  j.set("modules_to_save", Json()).set("peft_type", "LORA").set("r", lora.r).set("rank_pattern", ranks);
  j.set("revision", Json()).set("target_modules", target_pattern.empty() ? targets : Json(target_pattern));
  j.set("task_type", "CAUSAL_LM").set("use_rslora", lora.use_rslora);
  if (!exclude_modules.empty()) {  // newer than 0.9: only when used
    Json excluded = Json::array();
    for (const std::string& name : exclude_modules) excluded.push(name);
    j.set("exclude_modules", excluded);
  }
  return j;
}

nn::LoraOptions AdapterConfig::options_for(const std::string& path) const {
  nn::LoraOptions o = lora;
  for (const auto& [pattern, r] : rank_pattern)
    if (pattern_matches(path, pattern)) {
      o.r = r;
      break;
    }
  for (const auto& [pattern, alpha] : alpha_pattern)
    if (pattern_matches(path, pattern)) {
      o.alpha = alpha;
      break;
    }
  return o;
}

bool AdapterConfig::targets(const std::string& path) const {
  for (const std::string& name : exclude_modules)
    if (names_match(path, name)) return false;
  if (target_pattern == "all-linear") return path != "lm_head";
  if (!target_pattern.empty()) return std::regex_match(path, pattern_regex(target_pattern));
  return std::any_of(target_modules.begin(), target_modules.end(),
                     [&](const std::string& name) { return names_match(path, name); });
}

}  // namespace strata::models
