// Decoders from files: a Hugging Face folder (config.json, safetensors) or a GGUF file.
#pragma once

#include <filesystem>
#include <memory>

#include "data/text/tokenizer.h"
#include "models/decoder.h"

namespace strata::models {

struct LoadOptions {
  /// Dequantise block-quantised weights to f32 instead of keeping them packed.
  bool dequantize = false;
};

struct LoadedModel {
  std::shared_ptr<Decoder> model;                    // in eval mode, every parameter frozen
  std::shared_ptr<const text::Tokenizer> tokenizer;  // null if the files hold none
  std::string name;                                  // folder or file name
  std::string format;                                // "safetensors" or "gguf"
  std::string chat_template;
  std::vector<int64_t> stop_ids;   // union of generation_config, config and tokenizer
  std::string weights_digest;      // short text that tells checkpoints apart (sizes and a hash of the header)
  std::vector<std::string> notes;  // worth telling the user
};

/// Throws FormatError naming all missing, unexpected and mismatched tensors; nothing is ever left random.
LoadedModel load_model(const std::filesystem::path& path, LoadOptions options = {});

/// Makes every parameter trainable (full fine-tuning); those that lie in a mapped file are copied first.
void make_trainable(Decoder& model);

/// Writes config.json and model.safetensors (sharded above 4 GiB); quantised weights are written as f32.
void save_model(const Decoder& model, const std::filesystem::path& folder);

}  // namespace strata::models
