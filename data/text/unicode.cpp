#include "data/text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "tensor/error.h"

namespace strata::text {

namespace {
// Bounds of the second byte by lead byte (Unicode 15, table 3-7); length 0: not a lead byte.
struct Lead {
  size_t length;
  unsigned char low, high;
};

Lead lead(unsigned char byte) {
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte < 0xF0)
    return {3, static_cast<unsigned char>(byte == 0xE0 ? 0xA0 : 0x80),
            static_cast<unsigned char>(byte == 0xED ? 0x9F : 0xBF)};
  if (byte < 0xF5)
    return {4, static_cast<unsigned char>(byte == 0xF0 ? 0x90 : 0x80),
            static_cast<unsigned char>(byte == 0xF4 ? 0x8F : 0xBF)};
  return {0, 0, 0};
}

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
}  // namespace

Utf8Step utf8_step(std::string_view text, size_t position) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[position + i]); };
  if (byte(0) < 0x80) return {Utf8::valid, 1, byte(0)};
  Lead l = lead(byte(0));
  if (l.length == 0) return {Utf8::invalid, 1, 0};
  char32_t code = byte(0) & (0x7Fu >> l.length);
  for (size_t i = 1; i < l.length; ++i) {
    if (position + i == text.size()) return {Utf8::unfinished, i, 0};
    unsigned char low = i == 1 ? l.low : 0x80, high = i == 1 ? l.high : 0xBF;
    if (byte(i) < low || byte(i) > high) return {Utf8::invalid, i, 0};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  return {Utf8::valid, l.length, code};
}

void append_utf8(std::string& out, char32_t code) {
  auto put = [&](char32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

size_t append_decided(std::string& out, std::string_view bytes) {
  size_t i = 0;
  while (i < bytes.size()) {
    Utf8Step step = utf8_step(bytes, i);
    if (step.kind == Utf8::unfinished) break;
    out += step.kind == Utf8::valid ? bytes.substr(i, step.length) : kReplacement;
    i += step.length;
  }
  return i;
}

std::string replace_invalid_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  if (append_decided(out, bytes) < bytes.size()) out += kReplacement;
  return out;
}

bool is_valid_utf8(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size();) {
    if (static_cast<unsigned char>(bytes[i]) < 0x80) {
      ++i;
      continue;
    }
    Utf8Step step = utf8_step(bytes, i);
    if (step.kind != Utf8::valid) return false;
    i += step.length;
  }
  return true;
}

bool is_white_space(char32_t c) {
  return (c >= 0x9 && c <= 0xD) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

namespace {
utf8proc_category_t category(char32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}
}  // namespace

bool is_numeric(char32_t code) {
  auto c = category(code);
  return c == UTF8PROC_CATEGORY_ND || c == UTF8PROC_CATEGORY_NL || c == UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(char32_t code) {
  if (code < 0x80)
    return code > 0x20 && code < 0x7F && !(code >= '0' && code <= '9') &&
           !((code | 0x20) >= 'a' && (code | 0x20) <= 'z');
  auto c = category(code);
  return c >= UTF8PROC_CATEGORY_PC && c <= UTF8PROC_CATEGORY_PO;
}

bool is_mark(char32_t code) {
  auto c = category(code);
  return c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_MC || c == UTF8PROC_CATEGORY_ME;
}

bool is_word(char32_t code) {
  auto c = category(code);
  if ((c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO) || is_mark(code) || c == UTF8PROC_CATEGORY_ND ||
      c == UTF8PROC_CATEGORY_NL || c == UTF8PROC_CATEGORY_PC)
    return true;
  // Join_Control, and the signs that are Alphabetic: circled, squared and parenthesised letters
  return code == 0x200C || code == 0x200D || (code >= 0x24B6 && code <= 0x24E9) ||
         (code >= 0x1F130 && code <= 0x1F149) || (code >= 0x1F150 && code <= 0x1F169) ||
         (code >= 0x1F170 && code <= 0x1F189);
}

namespace {
// Marks in order of their combining class, characters of class 0 stay. utf8proc sorts by swapping neighbours, which
// takes hours on a megabyte of marks; this takes n log n.
void order_marks(std::vector<utf8proc_int32_t>& codes) {
  auto combining = [](utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; };
  for (size_t i = 0; i < codes.size();) {
    if (combining(codes[i]) == 0) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < codes.size() && combining(codes[end]) != 0) ++end;
    std::stable_sort(codes.begin() + static_cast<std::ptrdiff_t>(i), codes.begin() + static_cast<std::ptrdiff_t>(end),
                     [&](auto a, auto b) { return combining(a) < combining(b); });
    i = end;
  }
}

std::vector<utf8proc_int32_t> decompose(std::string_view text, utf8proc_option_t options) {
  std::vector<utf8proc_int32_t> codes;
  codes.reserve(text.size());
  for_each_char(text, [&](char32_t code, size_t, size_t) {
    utf8proc_int32_t parts[32];  // the longest decomposition has 18 code points (U+FDFA)
    int last_class = 0;
    auto n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), parts, 32, options, &last_class);
    check(n >= 0 && n <= 32, "normalize: cannot decompose U+{:04X}", static_cast<uint32_t>(code));
    codes.insert(codes.end(), parts, parts + n);
  });
  order_marks(codes);
  return codes;
}
}  // namespace

std::string normalize(std::string_view text, NormalForm form) {
  if (std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }))
    return std::string(text);
  bool compat = form == NormalForm::nfkc || form == NormalForm::nfkd;
  bool compose = form == NormalForm::nfc || form == NormalForm::nfkc;
  auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | (compat ? UTF8PROC_COMPAT : 0));
  auto codes = decompose(text, static_cast<utf8proc_option_t>(options | UTF8PROC_DECOMPOSE));
  auto length = static_cast<utf8proc_ssize_t>(codes.size());
  if (compose)
    length = utf8proc_normalize_utf32(codes.data(), length, static_cast<utf8proc_option_t>(options | UTF8PROC_COMPOSE));
  check(length >= 0, "normalize: {}", utf8proc_errmsg(length));
  std::string out;
  out.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < length; ++i) append_utf8(out, static_cast<char32_t>(codes[static_cast<size_t>(i)]));
  return out;
}

std::string lowercase(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for_each_char(text, [&](char32_t code, size_t, size_t) {
    if (code == 0x130)
      out += "i\xCC\x87";  // the one character whose full lower case is longer than the simple one
    else
      append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
  });
  return out;
}

}  // namespace strata::text
