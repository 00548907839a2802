// What a GGUF file's tokenizer.ggml.pre names: the split patterns of a byte-level vocabulary and what else goes with
// them. Names and meanings are llama.cpp's (src/llama-vocab.cpp); where a model's own tokenizer.json has the original
// of a pattern, the original is used.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace strata::text {

struct GgufPre {
  std::vector<std::string> patterns;  // applied in turn
  bool ignore_merges = false;
  bool add_bos = false;  // unless tokenizer.ggml.add_bos_token says otherwise
  bool nfc = false;      // the model's own tokenizer composes characters first
};

/// nullptr for a name we do not know.
const GgufPre* find_gguf_pre(std::string_view name);

}  // namespace strata::text
