// What stands around the model in Hugging Face's files: the post-processor's frame, special tokens by role, the chat
// template.
#pragma once

#include "data/text/bpe_tokenizer.h"
#include "data/text/place.h"

namespace strata::text {

/// "151643" -> 151643
TokenId parse_id(std::string_view text, const Place& place);

/// Fills parts.prefix and parts.suffix. null, ByteLevel, TemplateProcessing, BertProcessing, RobertaProcessing,
/// Sequence; any other type is a FormatError.
void read_post_processor(const Json& json, const Place& place, TokenizerParts& parts);

/// bos, eos, pad, unk, chat_template and add_bos_token / add_eos_token of tokenizer_config.json (may be null).
void read_config(const Json& config, const Place& place, TokenizerParts& parts);

}  // namespace strata::text
