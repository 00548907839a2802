// Added tokens: strings that are found in the text before anything else is done to it ("<|im_end|>", "<think>").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/vocabulary.h"

namespace strata::text {

struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool special = false;
  bool normalized = false;   // looked for after the normaliser ran, not before
  bool single_word = false;  // only where no word character stands beside it
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // ... and after it
};

/// A stretch of text between added tokens (id < 0), or one of them.
struct Section {
  size_t begin, end;
  TokenId id;
};

/// Finds tokens in text: at each place the longest, from left to right.
class TokenFinder {
 public:
  void add(const AddedToken& token, std::string_view content);
  bool empty() const { return tokens_.empty(); }
  std::vector<Section> split(std::string_view text) const;

 private:
  struct Node {
    std::vector<std::pair<unsigned char, uint32_t>> next;
    int64_t token = -1;
  };
  struct Match {
    size_t end;
    int64_t token = -1;
  };
  Match longest(std::string_view text, size_t from) const;

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::vector<bool> first_ = std::vector<bool>(256);  // bytes a token can begin with
};

}  // namespace strata::text
