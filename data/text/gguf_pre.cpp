#include "data/text/gguf_pre.h"

#include <map>

namespace strata::text {

namespace {
constexpr const char* kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kDigit = R"(\p{N})";

// Llama 3, Qwen 2 and others differ only in how many digits stand together.
std::string cl100k(const char* digits) {
  return std::string(R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)") + digits +
         R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
}

// GPT-4o and Tekken: a word is capitals followed by small letters.
std::string o200k(const char* contraction, const char* digits) {
  const char* upper = R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])";
  const char* lower = R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])";
  const char* lead = R"([^\r\n\p{L}\p{N}]?)";
  return std::string(lead) + upper + "*" + lower + "+" + contraction + "|" + lead + upper + "+" + lower + "*" +
         contraction + "|" + digits + R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
}

std::map<std::string, GgufPre, std::less<>> make_table() {
  std::map<std::string, GgufPre, std::less<>> table;
  auto name = [&](std::initializer_list<const char*> names, const GgufPre& pre) {
    for (const char* n : names) table[n] = pre;
  };
  name({"gpt-2", "phi-2", "mpt", "olmo", "jais", "exaone4", "trillion", "granite-docling"}, {{kGpt2}});
  name({"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"}, {{kDigit, kGpt2}});
  name({"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "lfm2"},
       {.patterns = {cl100k(R"(\p{N}{1,3})")}, .ignore_merges = true, .add_bos = true});
  name({"dbrx", "smaug-bpe", "glm4", "chatglm-bpe"}, {{cl100k(R"(\p{N}{1,3})")}});
  name({"qwen2"}, {.patterns = {cl100k(kDigit)}, .nfc = true});
  name({"deepseek-r1-qwen", "megrez", "stablelm2", "hunyuan"}, {{cl100k(kDigit)}});
  name({"gpt-4o", "llama4"}, {{o200k("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", R"(\p{N}{1,3})")}});
  name({"tekken"}, {.patterns = {o200k("", kDigit)}, .ignore_merges = true, .add_bos = true});
  name({"falcon"}, {{R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2, "[0-9][0-9][0-9]"}});
  name({"default"}, {{R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"}});
  return table;
}
}  // namespace

const GgufPre* find_gguf_pre(std::string_view name) {
  static const auto table = make_table();
  auto it = table.find(name);
  return it == table.end() ? nullptr : &it->second;
}

}  // namespace strata::text
