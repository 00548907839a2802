// What a decoder-only transformer is made of, read from config.json or GGUF metadata.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/io/json.h"

namespace strata::models {

struct RopeScaling {
  enum class Kind { none, linear, llama3 };
  Kind kind = Kind::none;
  double factor = 1;
  double low_freq_factor = 1;   // llama3
  double high_freq_factor = 4;  // llama3
  int64_t original_positions = 8192;
};

struct DecoderConfig {
  std::string architecture = "llama";  // model_type
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t max_positions = 2048;
  double rms_eps = 1e-5;
  double rope_theta = 10000;
  RopeScaling rope_scaling;
  std::vector<double> rope_divisors;  // [head_dim / 2], from a GGUF's rope_freqs.weight; empty: none
  bool tied_embeddings = false;
  bool attention_bias = false;
  bool mlp_bias = false;
  double initializer_range = 0.02;
  int64_t bos = -1;
  std::vector<int64_t> eos;  // every id that ends a text
  std::string dtype = "float32";

  /// From a Hugging Face config.json. FormatError names the field; architectures, activations, scalings and fields
  /// that would change the result and are not supported are errors, never ignored.
  static DecoderConfig from_hf(const Json& config);
  /// From GGUF metadata (general.architecture llama). The head is tied if the file has no output.weight.
  static DecoderConfig from_gguf(const Json& metadata, bool has_output_weight);
  /// A config.json transformers reads.
  Json to_hf() const;
  /// Throws FormatError unless all sizes are positive, sane and consistent; `source` names the file.
  void validate(const std::string& source) const;
};

/// Inverse frequencies of the rotated pairs, [head_dim / 2], with scaling applied (f64).
std::vector<double> rope_inverse_frequencies(const DecoderConfig& config);

}  // namespace strata::models
