// GPT-2's byte alphabet: every byte has a printable character, so that byte-level BPE can be spelled as text.
// Bytes 21..7E, A1..AC, AE..FF stand for themselves (as code points); the other 68, in order, are U+0100, U+0101, ...
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "data/text/unicode.h"

namespace strata::text {

inline constexpr int kAlphabetEnd = 0x144;  // one past the last code point of the alphabet

struct ByteAlphabet {
  std::array<uint16_t, 256> code{};          // byte -> code point
  std::array<int16_t, kAlphabetEnd> byte{};  // code point -> byte, -1 if it is not in the alphabet
};

constexpr ByteAlphabet make_byte_alphabet() {
  ByteAlphabet a;
  for (auto& b : a.byte) b = -1;
  uint16_t next = 0x100;
  for (int b = 0; b < 256; ++b) {
    bool itself = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b != 0xAD);
    uint16_t code = itself ? static_cast<uint16_t>(b) : next++;
    a.code[static_cast<size_t>(b)] = code;
    a.byte[code] = static_cast<int16_t>(b);
  }
  return a;
}

inline constexpr ByteAlphabet kByteAlphabet = make_byte_alphabet();

/// Bytes spelled in the alphabet.
inline void append_spelled(std::string& out, std::string_view bytes) {
  for (char c : bytes) append_utf8(out, kByteAlphabet.code[static_cast<unsigned char>(c)]);
}

/// The bytes a token of the alphabet stands for; a token with any other character stands for its own UTF-8 bytes.
inline std::string spelled_bytes(std::string_view token) {
  std::string bytes;
  bool all = true;
  for_each_char(token, [&](char32_t code, size_t, size_t) {
    all = all && code < kAlphabetEnd && kByteAlphabet.byte[code] >= 0;
    if (all) bytes += static_cast<char>(kByteAlphabet.byte[code]);
  });
  return all ? bytes : std::string(token);
}

}  // namespace strata::text
