#include "apps/model_flags.h"

#include <algorithm>

#include "apps/common/human.h"
#include "tensor/create.h"

namespace strata::apps {

void add_model_flags(Flags& flags, ModelOptions& options, bool with_adapter) {
  flags.section("model");
  flags.add("-m,--model", options.model, "Hugging Face folder (config.json, safetensors, tokenizer.json) or GGUF file")
      .required()
      .existing();
  if (with_adapter) flags.add("-a,--adapter", options.adapter, "folder of a LoRA adapter in PEFT's format");
  std::vector<std::string> names = data::Template::names();
  names.insert(names.begin(), "auto");
  flags.add("--template", options.prompt_template, "prompt template; auto: what the model's files point to")
      .one_of(names);
  flags.add("--system", options.system, "system message for conversations that have none");
}

namespace {

data::Template make_template(const std::string& name, const ModelOptions& options,
                             const std::shared_ptr<const text::Tokenizer>& tokenizer) {
  data::TemplateOptions settings;
  if (!options.system.empty()) settings.system_message = options.system;
  return data::Template::named(name, tokenizer, settings);
}

// The adapter's own record of its training wins over guessing, and contradicting it is an error.
std::string template_name(const ModelOptions& options, ReadyModel& ready) {
  std::string trained;
  if (ready.adapter && ready.adapter->extra.is_object())
    trained = ready.adapter->extra.get_or<std::string>("template", "");
  if (options.prompt_template != "auto") {
    check<UsageError>(trained.empty() || trained == options.prompt_template,
                      "--template {}: the adapter was trained with the template '{}'", options.prompt_template,
                      trained);
    ready.template_reason = "asked for";
    return options.prompt_template;
  }
  if (!trained.empty()) {
    ready.template_reason = "the adapter was trained with it";
    return trained;
  }
  data::TemplateChoice choice = data::detect_template(ready.tokenizer());
  ready.template_reason = choice.reason;
  return choice.name;
}

}  // namespace

ReadyModel load_ready_model(const ModelOptions& options) {
  ReadyModel ready;
  ready.loaded = models::load_model(options.model);
  check(ready.loaded.tokenizer != nullptr, "{}: no tokenizer found beside the weights (tokenizer.json)",
        options.model.string());
  ready.notes = ready.loaded.notes;
  if (!options.adapter.empty()) {
    ready.adapter = models::load_adapter(ready.model(), options.adapter);
    ready.model().eval();
    ready.notes.insert(ready.notes.end(), ready.adapter->warnings.begin(), ready.adapter->warnings.end());
    const Json& extra = ready.adapter->extra;
    if (extra.is_object() && extra.get_or<std::string>("base_digest", "") != ready.loaded.weights_digest)
      ready.notes.push_back(
          "the adapter was trained on other base weights (fingerprints differ): expect worse answers");
  }
  ready.form.emplace(make_template(template_name(options, ready), options, ready.loaded.tokenizer));
  if (ready.adapter && ready.adapter->extra.is_object()) {
    std::string trained = ready.adapter->extra.get_or<std::string>("template_hash", "");
    if (!trained.empty() && trained != ready.form->hash())
      ready.notes.push_back("the prompt differs from the one the adapter was trained with (system message?)");
  }
  ready.stop_ids = ready.loaded.stop_ids;
  for (int32_t id : ready.form->stop_ids())
    if (std::find(ready.stop_ids.begin(), ready.stop_ids.end(), id) == ready.stop_ids.end())
      ready.stop_ids.push_back(id);
  return ready;
}

std::string describe_model(const ReadyModel& ready) {
  const models::Decoder& model = *ready.loaded.model;
  const models::DecoderConfig& c = model.config();
  int64_t dense = model.parameter_count(), packed = model.quantized_values();
  for (auto& [path, layer] : models::lora_layers(*ready.loaded.model)) dense -= layer->a.numel() + layer->b.numel();
  std::string text = fmt::format("{} ({}): {} parameters", ready.loaded.name, ready.loaded.format,
                                 human_count(static_cast<double>(dense + packed)));
  if (packed > 0) text += fmt::format(", {} of them block-quantised", human_count(static_cast<double>(packed)));
  text += fmt::format("; {} layers, hidden {}, {} heads ({} key/value), vocabulary {}, context {}", c.layers,
                      c.hidden_size, c.heads, c.kv_heads, c.vocab_size, c.max_positions);
  return text;
}

ModelBatch to_model_batch(const data::RaggedBatch& batch) {
  auto n = static_cast<int64_t>(batch.ids.size());
  std::vector<int32_t> ids(batch.ids.begin(), batch.ids.end());
  std::vector<int32_t> targets(batch.targets.begin(), batch.targets.end());
  std::vector<int32_t> positions;
  std::vector<int64_t> lengths;
  for (size_t s = 0; s + 1 < batch.offsets.size(); ++s) {
    lengths.push_back(batch.offsets[s + 1] - batch.offsets[s]);
    for (int64_t p = 0; p < lengths.back(); ++p) positions.push_back(static_cast<int32_t>(p));
  }
  return {{from_values(ids, {n}), from_values(positions, {n}), Ragged::packed(lengths)},
          from_values(targets, {n}),
          batch.counted};
}

std::vector<int32_t> encode_prompt(const text::Tokenizer& tokenizer, const std::string& prompt) {
  std::vector<int32_t> ids = tokenizer.encode(prompt, {.add_special = false, .parse_special = true});
  auto bos = tokenizer.bos();
  if (tokenizer.adds_bos() && bos && (ids.empty() || ids[0] != *bos)) ids.insert(ids.begin(), *bos);
  return ids;
}

}  // namespace strata::apps
