#include "data/text/tokenizer.h"
#include "data/text/unicode.h"

namespace strata::text {

StreamDecoder::StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special, bool starts_text)
    : tokenizer_(std::move(tokenizer)), skip_special_(skip_special), starts_text_(starts_text) {}

std::string StreamDecoder::push(TokenId id) {
  if (skip_special_ && tokenizer_->is_special(id)) return "";
  if (!tokenizer_->has_token(id)) return "";
  held_ += tokenizer_->token_bytes(id, starts_text_);
  starts_text_ = false;
  std::string out;
  held_.erase(0, append_decided(out, held_));
  return out;
}

std::string StreamDecoder::flush() {
  std::string out = replace_invalid_utf8(held_);
  held_.clear();
  return out;
}

}  // namespace strata::text
