#include "data/text/added_tokens.h"

#include <algorithm>

#include "data/text/unicode.h"

namespace strata::text {

namespace {
char32_t last_char(std::string_view text) {
  size_t i = text.size();
  while (i > 0 && (static_cast<unsigned char>(text[i - 1]) & 0xC0) == 0x80) --i;
  return i > 0 ? utf8_step(text, i - 1).code : U'\0';
}

bool is_single_word(std::string_view text, size_t begin, size_t end) {
  bool before = begin > 0 && is_word(last_char(text.substr(0, begin)));
  bool after = end < text.size() && is_word(utf8_step(text, end).code);
  return !before && !after;
}

size_t skip_space_left(std::string_view text, size_t begin, size_t limit) {
  while (begin > limit) {
    size_t i = begin - 1;
    while (i > limit && (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) --i;
    if (!is_white_space(utf8_step(text, i).code)) break;
    begin = i;
  }
  return begin;
}

size_t skip_space_right(std::string_view text, size_t end) {
  while (end < text.size()) {
    Utf8Step step = utf8_step(text, end);
    if (!is_white_space(step.code)) break;
    end += step.length;
  }
  return end;
}
}  // namespace

void TokenFinder::add(const AddedToken& token, std::string_view content) {
  if (content.empty()) return;
  uint32_t node = 0;
  for (char c : content) {
    auto byte = static_cast<unsigned char>(c);
    auto& next = nodes_[node].next;
    auto it = std::find_if(next.begin(), next.end(), [&](const auto& n) { return n.first == byte; });
    if (it != next.end()) {
      node = it->second;
      continue;
    }
    auto fresh = static_cast<uint32_t>(nodes_.size());
    next.emplace_back(byte, fresh);
    nodes_.emplace_back();
    node = fresh;
  }
  first_[static_cast<unsigned char>(content[0])] = true;
  nodes_[node].token = static_cast<int64_t>(tokens_.size());
  tokens_.push_back(token);
}

TokenFinder::Match TokenFinder::longest(std::string_view text, size_t from) const {
  Match best{from, -1};
  uint32_t node = 0;
  for (size_t i = from; i < text.size(); ++i) {
    const auto& next = nodes_[node].next;
    auto it = std::find_if(next.begin(), next.end(),
                           [&](const auto& n) { return n.first == static_cast<unsigned char>(text[i]); });
    if (it == next.end()) break;
    node = it->second;
    if (nodes_[node].token >= 0) best = {i + 1, nodes_[node].token};
  }
  return best;
}

std::vector<Section> TokenFinder::split(std::string_view text) const {
  std::vector<Section> sections;
  size_t done = 0;
  for (size_t i = 0; !empty() && i < text.size();) {
    Match match = first_[static_cast<unsigned char>(text[i])] ? longest(text, i) : Match{i, -1};
    if (match.token < 0) {
      ++i;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<size_t>(match.token)];
    size_t begin = i, end = match.end;
    i = end;  // white space that rstrip takes may still be a token itself
    if (token.single_word && !is_single_word(text, begin, end)) continue;
    if (token.lstrip) begin = std::max(skip_space_left(text, begin, done), done);
    if (token.rstrip) end = skip_space_right(text, end);
    if (begin >= end) continue;  // a neighbour took all of it
    if (done < begin) sections.push_back({done, begin, -1});
    sections.push_back({begin, end, token.id});
    done = std::max(done, end);
  }
  if (done < text.size()) sections.push_back({done, text.size(), -1});
  return sections;
}

}  // namespace strata::text
