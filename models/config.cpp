#include "models/config.h"

#include <cmath>
#include <numbers>
#include <set>

#include "tensor/error.h"

namespace strata::models {

namespace {

// Fields of config.json that do not change what the model computes, or that are read below.
const std::set<std::string, std::less<>> kKnownFields = {"architectures",
                                                         "attention_bias",
                                                         "attention_dropout",
                                                         "bos_token_id",
                                                         "eos_token_id",
                                                         "pad_token_id",
                                                         "head_dim",
                                                         "hidden_act",
                                                         "hidden_size",
                                                         "initializer_range",
                                                         "intermediate_size",
                                                         "max_position_embeddings",
                                                         "mlp_bias",
                                                         "model_type",
                                                         "num_attention_heads",
                                                         "num_hidden_layers",
                                                         "num_key_value_heads",
                                                         "pretraining_tp",
                                                         "rms_norm_eps",
                                                         "rope_scaling",
                                                         "rope_parameters",
                                                         "rope_theta",
                                                         "tie_word_embeddings",
                                                         "torch_dtype",
                                                         "dtype",
                                                         "transformers_version",
                                                         "use_cache",
                                                         "vocab_size",
                                                         "_name_or_path",
                                                         "rope_interleaved",
                                                         "is_llama_config",
                                                         "transformers.js_config",
                                                         "quantization_config"};

std::vector<int64_t> id_list(const Json& config, const char* key) {
  const Json* value = config.find(key);
  if (!value || value->is_null()) return {};
  if (!value->is_array()) return {config.get<int64_t>(key)};
  std::vector<int64_t> ids;
  for (const Json& id : value->items()) ids.push_back(id.as_int());
  return ids;
}

RopeScaling read_scaling(const Json& config) {
  RopeScaling scaling;
  const Json* found = config.find("rope_scaling");
  if (!found || found->is_null()) found = config.find("rope_parameters");  // transformers 5
  if (!found || found->is_null()) return scaling;
  std::string kind = found->get_or<std::string>("rope_type", found->get_or<std::string>("type", "default"));
  std::set<std::string, std::less<>> read = {"rope_type", "type", "rope_theta"};
  if (kind == "linear" || kind == "llama3") {
    scaling.kind = kind == "linear" ? RopeScaling::Kind::linear : RopeScaling::Kind::llama3;
    scaling.factor = found->get<double>("factor");
    read.insert("factor");
    check<FormatError>(scaling.factor > 0, "{}: field 'rope_scaling.factor' must be positive, got {}", config.source(),
                       scaling.factor);
  }
  if (kind == "llama3") {
    scaling.low_freq_factor = found->get<double>("low_freq_factor");
    scaling.high_freq_factor = found->get<double>("high_freq_factor");
    scaling.original_positions = found->get<int64_t>("original_max_position_embeddings");
    read.insert({"low_freq_factor", "high_freq_factor", "original_max_position_embeddings"});
    check<FormatError>(scaling.high_freq_factor > scaling.low_freq_factor && scaling.low_freq_factor > 0,
                       "{}: rope_scaling: high_freq_factor must exceed low_freq_factor > 0, got {} and {}",
                       config.source(), scaling.high_freq_factor, scaling.low_freq_factor);
  }
  check<FormatError>(kind == "default" || kind == "linear" || kind == "llama3",
                     "{}: field 'rope_scaling': kind '{}' is not supported (default, linear, llama3 are)",
                     config.source(), kind);
  for (const auto& [key, value] : found->members())
    check<FormatError>(read.contains(key) || value.is_null(),
                       "{}: field 'rope_scaling.{}' is not understood for kind '{}'", config.source(), key, kind);
  return scaling;
}

double read_theta(const Json& config) {
  const Json* parameters = config.find("rope_parameters");
  if (parameters && parameters->find("rope_theta")) return parameters->get<double>("rope_theta");
  return config.get_or<double>("rope_theta", 10000.0);
}

}  // namespace

DecoderConfig DecoderConfig::from_hf(const Json& config) {
  DecoderConfig c;
  c.architecture = config.get<std::string>("model_type");
  check<FormatError>(c.architecture == "llama", "{}: field 'model_type': architecture '{}' is not supported (llama is)",
                     config.source(), c.architecture);
  std::string act = config.get_or<std::string>("hidden_act", "silu");
  check<FormatError>(act == "silu", "{}: field 'hidden_act' must be silu, got '{}'", config.source(), act);
  for (const auto& [key, value] : config.members()) {
    bool empty = value.is_null() || (value.is_bool() && !value.as_bool()) || (value.is_object() && value.size() == 0);
    check<FormatError>(kKnownFields.contains(key) || empty, "{}: field '{}' is not understood for model_type llama",
                       config.source(), key);
  }
  const Json* quantization = config.find("quantization_config");
  check<FormatError>(!quantization || quantization->is_null(),
                     "{}: field 'quantization_config': quantised checkpoints of this kind are not supported",
                     config.source());
  c.vocab_size = config.get<int64_t>("vocab_size");
  c.hidden_size = config.get<int64_t>("hidden_size");
  c.intermediate_size = config.get<int64_t>("intermediate_size");
  c.layers = config.get<int64_t>("num_hidden_layers");
  c.heads = config.get<int64_t>("num_attention_heads");
  c.kv_heads = config.get_or<int64_t>("num_key_value_heads", c.heads);
  c.head_dim = config.get_or<int64_t>("head_dim", c.heads > 0 ? c.hidden_size / c.heads : 0);
  c.max_positions = config.get_or<int64_t>("max_position_embeddings", 2048);
  c.rms_eps = config.get_or<double>("rms_norm_eps", 1e-6);
  c.rope_theta = read_theta(config);
  c.rope_scaling = read_scaling(config);
  c.tied_embeddings = config.get_or<bool>("tie_word_embeddings", false);
  c.attention_bias = config.get_or<bool>("attention_bias", false);
  c.mlp_bias = config.get_or<bool>("mlp_bias", false);
  c.initializer_range = config.get_or<double>("initializer_range", 0.02);
  std::vector<int64_t> bos = id_list(config, "bos_token_id");
  c.bos = bos.empty() ? -1 : bos[0];
  c.eos = id_list(config, "eos_token_id");
  c.dtype = config.get_or<std::string>("torch_dtype", config.get_or<std::string>("dtype", "float32"));
  c.validate(config.source());
  return c;
}

DecoderConfig DecoderConfig::from_gguf(const Json& metadata, bool has_output_weight) {
  DecoderConfig c;
  c.architecture = metadata.get<std::string>("general.architecture");
  check<FormatError>(c.architecture == "llama", "{}: field 'general.architecture': '{}' is not supported (llama is)",
                     metadata.source(), c.architecture);
  auto integer = [&](const char* key) { return metadata.get<int64_t>(std::string("llama.") + key); };
  c.layers = integer("block_count");
  c.hidden_size = integer("embedding_length");
  c.intermediate_size = integer("feed_forward_length");
  c.heads = integer("attention.head_count");
  c.kv_heads = metadata.get_or<int64_t>("llama.attention.head_count_kv", c.heads);
  c.head_dim = metadata.get_or<int64_t>("llama.attention.key_length", c.heads > 0 ? c.hidden_size / c.heads : 0);
  int64_t rotated = metadata.get_or<int64_t>("llama.rope.dimension_count", c.head_dim);
  check<FormatError>(rotated == c.head_dim, "{}: field 'llama.rope.dimension_count' must be the head size {}, got {}",
                     metadata.source(), c.head_dim, rotated);
  c.max_positions = integer("context_length");
  c.rms_eps = metadata.get<double>("llama.attention.layer_norm_rms_epsilon");
  c.rope_theta = metadata.get_or<double>("llama.rope.freq_base", 10000.0);
  std::string kind = metadata.get_or<std::string>("llama.rope.scaling.type", "none");
  check<FormatError>(kind == "none" || kind == "linear", "{}: field 'llama.rope.scaling.type': '{}' is not supported",
                     metadata.source(), kind);
  if (kind == "linear") {
    c.rope_scaling.kind = RopeScaling::Kind::linear;
    c.rope_scaling.factor = metadata.get<double>("llama.rope.scaling.factor");
  }
  check<FormatError>(metadata.get_or<int64_t>("llama.expert_count", 0) == 0,
                     "{}: mixture-of-experts models are not supported", metadata.source());
  const Json* tokens = metadata.find("tokenizer.ggml.tokens");
  c.vocab_size = tokens ? static_cast<int64_t>(tokens->size()) : integer("vocab_size");
  c.tied_embeddings = !has_output_weight;
  c.bos = metadata.get_or<int64_t>("tokenizer.ggml.bos_token_id", -1);
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"})
    if (int64_t id = metadata.get_or<int64_t>(key, -1); id >= 0) c.eos.push_back(id);
  c.validate(metadata.source());
  return c;
}

void DecoderConfig::validate(const std::string& source) const {
  constexpr int64_t kMost = int64_t{1} << 24;  // far above every real model; products stay far below 2^63
  auto sane = [&](const char* field, int64_t value) {
    check<FormatError>(value >= 1 && value <= kMost, "{}: field '{}' must be between 1 and {}, got {}", source, field,
                       kMost, value);
  };
  sane("vocab_size", vocab_size);
  sane("hidden_size", hidden_size);
  sane("intermediate_size", intermediate_size);
  sane("num_attention_heads", heads);
  sane("num_key_value_heads", kv_heads);
  sane("head_dim", head_dim);
  sane("max_position_embeddings", max_positions);
  check<FormatError>(layers >= 1 && layers <= 1024, "{}: field 'num_hidden_layers' must be between 1 and 1024, got {}",
                     source, layers);
  check<FormatError>(heads % kv_heads == 0,
                     "{}: field 'num_key_value_heads' must divide num_attention_heads {}, got {}", source, heads,
                     kv_heads);
  check<FormatError>(head_dim % 2 == 0, "{}: field 'head_dim' must be even for rotary embedding, got {}", source,
                     head_dim);
  check<FormatError>(rms_eps > 0 && rms_eps < 1, "{}: field 'rms_norm_eps' must be in (0, 1), got {}", source, rms_eps);
  check<FormatError>(rope_theta > 0, "{}: field 'rope_theta' must be positive, got {}", source, rope_theta);
}

Json DecoderConfig::to_hf() const {
  Json j = Json::object();
  j.set("architectures", Json::array().push("LlamaForCausalLM"));
  j.set("attention_bias", attention_bias);
  j.set("attention_dropout", 0.0);
  if (bos >= 0) j.set("bos_token_id", bos);
  if (eos.size() == 1) j.set("eos_token_id", eos[0]);
  if (eos.size() > 1) {
    Json ids = Json::array();
    for (int64_t id : eos) ids.push(id);
    j.set("eos_token_id", ids);
  }
  j.set("head_dim", head_dim).set("hidden_act", "silu").set("hidden_size", hidden_size);
  j.set("initializer_range", initializer_range).set("intermediate_size", intermediate_size);
  j.set("max_position_embeddings", max_positions).set("mlp_bias", mlp_bias).set("model_type", architecture);
  j.set("num_attention_heads", heads).set("num_hidden_layers", layers).set("num_key_value_heads", kv_heads);
  j.set("rms_norm_eps", rms_eps);
  Json scaling;
  if (rope_scaling.kind == RopeScaling::Kind::linear)
    scaling = Json::object().set("rope_type", "linear").set("factor", rope_scaling.factor);
  if (rope_scaling.kind == RopeScaling::Kind::llama3)
    scaling = Json::object()
                  .set("rope_type", "llama3")
                  .set("factor", rope_scaling.factor)
                  .set("low_freq_factor", rope_scaling.low_freq_factor)
                  .set("high_freq_factor", rope_scaling.high_freq_factor)
                  .set("original_max_position_embeddings", rope_scaling.original_positions);
  j.set("rope_scaling", scaling).set("rope_theta", rope_theta).set("tie_word_embeddings", tied_embeddings);
  j.set("torch_dtype", dtype).set("use_cache", true).set("vocab_size", vocab_size);
  return j;
}

std::vector<double> rope_inverse_frequencies(const DecoderConfig& config) {
  const RopeScaling& s = config.rope_scaling;
  std::vector<double> inverse;
  for (int64_t i = 0; i < config.head_dim / 2; ++i) {
    double f = std::pow(config.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(config.head_dim));
    if (s.kind == RopeScaling::Kind::linear) f /= s.factor;
    if (s.kind == RopeScaling::Kind::llama3) {  // long wavelengths are stretched, short kept, between: mixed
      double wavelength = 2 * std::numbers::pi / f;
      auto original = static_cast<double>(s.original_positions);
      double smooth = (original / wavelength - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
      smooth = std::min(1.0, std::max(0.0, smooth));
      f = (1 - smooth) * f / s.factor + smooth * f;
    }
    if (!config.rope_divisors.empty()) f /= config.rope_divisors[static_cast<size_t>(i)];
    inverse.push_back(f);
  }
  return inverse;
}

}  // namespace strata::models
