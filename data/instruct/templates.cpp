// The built-in templates, each as its authors publish it, and how one is chosen for a model.
#include <algorithm>

#include "data/instruct/template.h"
#include "tensor/error.h"

namespace strata::data {

namespace {

using Bos = TemplateSpec::Bos;
using System = TemplateSpec::System;

Mark special(std::string text) {
  return {std::move(text), true};
}
Mark plain(std::string text) {
  return {std::move(text), false};
}

// Stanford Alpaca, train.py: the answer follows "### Response:" directly and ends with the tokenizer's EOS.
TemplateSpec alpaca() {
  const std::string begin = "Below is an instruction that describes a task";
  const std::string end = "Write a response that appropriately completes the request.\n\n";
  return {.name = "alpaca",
          .bos = Bos::if_tokenizer_adds,
          .start = {plain(begin + ". " + end)},
          .start_with_input = {plain(begin + ", paired with an input that provides further context. " + end)},
          .system_replaces_start = true,
          .system_after = {plain("\n\n")},
          .user_before = {plain("### Instruction:\n")},
          .input_before = {plain("\n\n### Input:\n")},
          .assistant_before = {plain("\n\n### Response:")},
          .end_of_turn = {special(kEos)},
          .between = {plain("\n\n")}};
}

TemplateSpec chatml() {
  auto header = [](const char* role) { return Marks{special("<|im_start|>"), plain(std::string(role) + "\n")}; };
  const Marks after = {special("<|im_end|>"), plain("\n")};
  return {.name = "chatml",
          .system_before = header("system"),
          .system_after = after,
          .user_before = header("user"),
          .user_after = after,
          .assistant_before = header("assistant"),
          .end_of_turn = {special("<|im_end|>")},
          .assistant_after = {plain("\n")}};
}

// Llama 2 chat: BOS before every user turn, EOS after every answer (the published one has a space before EOS,
// which would have to be generated; it is left out).
TemplateSpec llama2() {
  return {.name = "llama2",
          .system = System::in_first_user,
          .system_before = {plain("<<SYS>>\n")},
          .system_after = {plain("\n<</SYS>>\n\n")},
          .user_before = {special(kBos), plain("[INST] ")},
          .user_after = {plain(" [/INST]")},
          .assistant_before = {plain(" ")},
          .end_of_turn = {special(kEos)},
          .trim = true,
          .alternating = true};
}

TemplateSpec llama3() {
  auto header = [](const char* role) {
    return Marks{special("<|start_header_id|>"), plain(role), special("<|end_header_id|>"), plain("\n\n")};
  };
  const Marks after = {special("<|eot_id|>")};
  return {.name = "llama3",
          .bos = Bos::always,
          .system_before = header("system"),
          .system_after = after,
          .user_before = header("user"),
          .user_after = after,
          .assistant_before = header("assistant"),
          .end_of_turn = after,
          .trim = true};
}

// Mistral 7B v0.1 and v0.2: [INST] is plain text.
TemplateSpec mistral() {
  return {.name = "mistral",
          .bos = Bos::always,
          .system = System::in_first_user,
          .system_after = {plain("\n\n")},
          .user_before = {plain("[INST] ")},
          .user_after = {plain(" [/INST]")},
          .assistant_before = {plain(" ")},
          .end_of_turn = {special(kEos)},
          .alternating = true};
}

// Mistral v0.3 and later with a SentencePiece vocabulary: [INST] is a token.
TemplateSpec mistral_v3() {
  TemplateSpec spec = mistral();
  spec.name = "mistral-v3";
  spec.user_before = {special("[INST]"), plain(" ")};
  spec.user_after = {special("[/INST]")};
  return spec;
}

// Mistral models with the Tekken vocabulary (Nemo and later): no spaces around texts.
TemplateSpec mistral_tekken() {
  TemplateSpec spec = mistral_v3();
  spec.name = "mistral-tekken";
  spec.user_before = {special("[INST]")};
  spec.assistant_before = {};
  return spec;
}

TemplateSpec gemma() {
  return {.name = "gemma",
          .bos = Bos::always,
          .system = System::in_first_user,
          .system_after = {plain("\n\n")},
          .user_before = {special("<start_of_turn>"), plain("user\n")},
          .user_after = {special("<end_of_turn>"), plain("\n")},
          .assistant_before = {special("<start_of_turn>"), plain("model\n")},
          .end_of_turn = {special("<end_of_turn>")},
          .assistant_after = {plain("\n")},
          .trim = true,
          .alternating = true};
}

TemplateSpec phi3() {
  auto header = [](const char* role) { return Marks{special(role), plain("\n")}; };
  const Marks after = {special("<|end|>"), plain("\n")};
  return {.name = "phi3",
          .bos = Bos::if_tokenizer_adds,
          .system_before = header("<|system|>"),
          .system_after = after,
          .user_before = header("<|user|>"),
          .user_after = after,
          .assistant_before = header("<|assistant|>"),
          .end_of_turn = {special("<|end|>")},
          .assistant_after = {plain("\n")}};
}

// Zephyr and TinyLlama-Chat: the role markers are plain text, every turn ends with EOS.
TemplateSpec zephyr() {
  const Marks after = {special(kEos), plain("\n")};
  return {.name = "zephyr",
          .bos = Bos::if_tokenizer_adds,
          .system_before = {plain("<|system|>\n")},
          .system_after = after,
          .user_before = {plain("<|user|>\n")},
          .user_after = after,
          .assistant_before = {plain("<|assistant|>\n")},
          .end_of_turn = {special(kEos)},
          .assistant_after = {plain("\n")}};
}

constexpr TemplateSpec (*kBuiltIn[])() = {alpaca,     chatml,         llama2, llama3, mistral,
                                          mistral_v3, mistral_tekken, gemma,  phi3,   zephyr};

/// Which chat template a model has: all `markers` stand in its text; all `tokens` are in the vocabulary.
struct Sign {
  const char* name;
  std::vector<std::string> markers;
  std::vector<std::string> tokens;
  bool by_tokens_alone;
  bool leading_space = false;  // only for vocabularies that put a space before a text
};

const std::vector<Sign>& signs() {
  static const std::vector<Sign> kSigns = {
      {"chatml", {"<|im_start|>"}, {"<|im_start|>", "<|im_end|>"}, true},
      {"llama3", {"<|start_header_id|>"}, {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}, true},
      {"gemma", {"<start_of_turn>"}, {"<start_of_turn>", "<end_of_turn>"}, true},
      {"phi3", {"<|user|>", "<|end|>"}, {"<|user|>", "<|assistant|>", "<|end|>"}, true},
      {"zephyr", {"<|user|>", "eos_token"}, {}, false},
      {"llama2", {"[INST]", "<<SYS>>"}, {}, false},
      {"mistral-v3", {"[INST]"}, {"[INST]", "[/INST]"}, true, true},
      {"mistral-tekken", {"[INST]"}, {"[INST]", "[/INST]"}, true},
      {"mistral", {"[INST]"}, {}, false},
  };
  return kSigns;
}

}  // namespace

std::vector<std::string> Template::names() {
  std::vector<std::string> names;
  for (auto make : kBuiltIn) names.push_back(make().name);
  return names;
}

Template Template::named(std::string_view name, std::shared_ptr<const Tokenizer> tokenizer, TemplateOptions options) {
  std::string known;
  for (auto make : kBuiltIn) {
    TemplateSpec spec = make();
    if (spec.name == name) return Template(std::move(spec), std::move(tokenizer), std::move(options));
    known += (known.empty() ? "" : ", ") + spec.name;
  }
  fail<UsageError>("template: must be one of {}, got '{}'", known, name);
}

TemplateChoice detect_template(const Tokenizer& tokenizer) {
  const std::string& chat = tokenizer.chat_template();
  std::vector<TokenId> probe = tokenizer.encode("a");
  bool leading_space = !probe.empty() && tokenizer.token_bytes(probe[0]).starts_with(' ');
  auto vocabulary_fits = [&](const Sign& sign) {
    return (leading_space || !sign.leading_space) &&
           std::all_of(sign.tokens.begin(), sign.tokens.end(),
                       [&](const std::string& token) { return tokenizer.token_id(token).has_value(); });
  };
  auto writes = [&](const std::string& marker) { return chat.find(marker) != std::string::npos; };
  for (const Sign& sign : signs())
    if (!chat.empty() && std::all_of(sign.markers.begin(), sign.markers.end(), writes) && vocabulary_fits(sign))
      return {sign.name, fmt::format("the model's chat template writes {}", sign.markers[0])};
  for (const Sign& sign : signs())
    if (sign.by_tokens_alone && vocabulary_fits(sign))
      return {sign.name, fmt::format("the vocabulary has the token {}", sign.tokens[0])};
  return {"alpaca", chat.empty() ? "the model has neither a chat template nor chat tokens"
                                 : "the model's chat template is of no built-in kind"};
}

}  // namespace strata::data
