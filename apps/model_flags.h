// Model, adapter and prompt template, as every command that runs a language model takes them.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/common/flags.h"
#include "data/instruct/batches.h"
#include "data/instruct/template.h"
#include "models/adapters.h"
#include "models/load.h"

namespace strata::apps {

struct ModelOptions {
  std::filesystem::path model;
  std::filesystem::path adapter;
  std::string prompt_template = "auto";
  std::string system;
};

/// --model (required), --adapter (if asked for), --template, --system.
void add_model_flags(Flags& flags, ModelOptions& options, bool with_adapter);

struct ReadyModel {
  models::LoadedModel loaded;
  std::optional<models::LoadedAdapter> adapter;
  std::optional<data::Template> form;
  std::string template_reason;     // why this template
  std::vector<int64_t> stop_ids;   // of model and template together
  std::vector<std::string> notes;  // to print: what loading noticed

  models::Decoder& model() { return *loaded.model; }
  const text::Tokenizer& tokenizer() const { return *loaded.tokenizer; }
};

/// Loads everything. Throws UsageError where the adapter was trained with another template than the one asked for.
ReadyModel load_ready_model(const ModelOptions& options);

/// "134.5 M parameters (Q4_1 and Q8_0 packed), 30 layers, ..." for people.
std::string describe_model(const ReadyModel& ready);

/// A data batch as the model reads it, and its targets [N] i32.
struct ModelBatch {
  models::TokenBatch tokens;
  Tensor targets;
  int64_t counted = 0;
};
ModelBatch to_model_batch(const data::RaggedBatch& batch);

/// A raw prompt as ids: special tokens recognised, BOS as the tokenizer says and never twice.
std::vector<int32_t> encode_prompt(const text::Tokenizer& tokenizer, const std::string& prompt);

}  // namespace strata::apps
