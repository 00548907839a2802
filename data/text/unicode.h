// UTF-8 and the character properties that tokenizers ask for.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace strata::text {

enum class Utf8 { valid, invalid, unfinished };

/// What stands at one position: a character, bytes that can belong to none (the maximal ill-formed run, which
/// Unicode replaces by one U+FFFD), or the beginning of a character that the end of the text cuts off.
struct Utf8Step {
  Utf8 kind;
  size_t length;  // bytes, at least 1
  char32_t code;  // of a valid character
};
Utf8Step utf8_step(std::string_view text, size_t position);

void append_utf8(std::string& out, char32_t code);

/// The characters of valid UTF-8 text, one by one: f(code, begin, end).
template <class F>
void for_each_char(std::string_view text, F&& f) {
  for (size_t i = 0; i < text.size();) {
    Utf8Step step = utf8_step(text, i);
    f(step.code, i, i + step.length);
    i += step.length;
  }
}

/// Appends everything in `bytes` that is decided: characters, and U+FFFD for invalid bytes. Returns how many bytes
/// that took; what is left (at most 3 bytes) is the beginning of a character.
size_t append_decided(std::string& out, std::string_view bytes);

/// Valid UTF-8: invalid bytes, an unfinished character at the end included, become U+FFFD.
std::string replace_invalid_utf8(std::string_view bytes);
bool is_valid_utf8(std::string_view bytes);

bool is_white_space(char32_t code);  // property White_Space
bool is_numeric(char32_t code);      // Nd, Nl, No
bool is_punctuation(char32_t code);  // P*, and the ASCII symbols
bool is_mark(char32_t code);         // M*
bool is_word(char32_t code);         // letters, marks, digits, connectors: \w

enum class NormalForm { nfc, nfd, nfkc, nfkd };
/// Takes and gives valid UTF-8.
std::string normalize(std::string_view text, NormalForm form);
std::string lowercase(std::string_view text);

}  // namespace strata::text
