// Regular expressions of tokenizer files. They are written for Oniguruma (Hugging Face); we run them with PCRE2's JIT
// and rewrite what the two understand differently: \s \S \w \W \b \B (Unicode's White_Space and word characters), {,n},
// (?m:...). What we cannot express (nested classes, &&, a possessive interval) is a FormatError, never a guess.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "data/text/place.h"

namespace strata::text {

class Regex {
 public:
  /// Throws FormatError (naming `place`) if the pattern does not compile.
  Regex(std::string_view pattern, const Place& place);

  /// Looks for matches in one text after another: make one and use it for many.
  class Search {
   public:
    explicit Search(const Regex& regex);
    ~Search();
    Search(const Search&) = delete;
    Search& operator=(const Search&) = delete;

    /// All matches in valid UTF-8, from left to right, none overlapping: f(begin, end). Only `text` is looked at.
    /// Throws Error if a match takes too many steps.
    template <class F>
    void for_each_match(std::string_view text, F&& f) {
      start(text);
      size_t begin = 0, end = 0;
      while (next(begin, end)) f(begin, end);
    }

   private:
    void start(std::string_view text);
    bool next(size_t& begin, size_t& end);
    int match(size_t from);

    const Regex& regex_;
    std::string_view text_;
    void* data_ = nullptr;     // pcre2_match_data
    void* context_ = nullptr;  // pcre2_match_context, with a large JIT stack once one was needed
    void* stack_ = nullptr;    // pcre2_jit_stack
    size_t from_ = 0;
    bool after_match_ = false;  // a match ended at from_
  };

  /// Every match replaced by `with`, taken literally.
  std::string replace_all(std::string_view text, std::string_view with) const;

 private:
  std::shared_ptr<void> code_;  // pcre2_code, immutable: shared between threads
  std::string pattern_;
};

/// The pattern in PCRE2's language.
std::string to_pcre2(std::string_view onig, const Place& place);

}  // namespace strata::text
