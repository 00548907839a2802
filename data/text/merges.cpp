#include "data/text/merges.h"

#include <algorithm>

#include "data/text/unicode.h"

namespace strata::text {

namespace {
using Pair = std::pair<std::string_view, std::string_view>;

Pair read_pair(const Json& merge, const Place& list, size_t index) {
  if (merge.is_array()) {
    const auto& pair = merge.items();
    if (pair.size() == 2 && pair[0].is_string() && pair[1].is_string())
      return {pair[0].as_string(), pair[1].as_string()};
    list.at(index).fail("expected two tokens, got {}", shown(merge.dump()));
  }
  std::string_view text = merge.is_string() ? std::string_view(merge.as_string()) : std::string_view();
  size_t blank = text.find(' ');
  if (blank == std::string_view::npos || text.find(' ', blank + 1) != std::string_view::npos)
    list.at(index).fail("expected two tokens with one blank between, got {}", shown(merge.dump()));
  return {text.substr(0, blank), text.substr(blank + 1)};
}
}  // namespace

std::vector<Merge> read_merges(const Json& list, const Place& place, const Vocabulary& vocabulary) {
  const auto& items = read_array(list, place);
  std::vector<Merge> merges;
  merges.reserve(items.size());
  std::string joined;
  for (size_t i = 0; i < items.size(); ++i) {
    auto id = [&](std::string_view text) {
      auto found = vocabulary.find(text);
      if (!found) place.at(i).fail("token '{}' is not in the vocabulary", shown(text));
      return *found;
    };
    auto [left, right] = read_pair(items[i], place, i);
    joined.assign(left).append(right);
    merges.push_back({id(left), id(right), id(joined), static_cast<uint32_t>(i)});
  }
  return merges;
}

std::vector<Merge> merges_from_scores(const Vocabulary& vocabulary, const std::vector<float>& scores,
                                      const std::vector<bool>& usable) {
  std::vector<TokenId> order;
  for (TokenId id = 0; id < vocabulary.end(); ++id)
    if (usable[static_cast<size_t>(id)]) order.push_back(id);
  auto score = [&](TokenId id) { return scores[static_cast<size_t>(id)]; };
  std::stable_sort(order.begin(), order.end(), [&](TokenId a, TokenId b) { return score(a) > score(b); });
  std::vector<Merge> merges;
  uint32_t rank = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && score(order[i]) != score(order[i - 1])) ++rank;
    std::string_view text = vocabulary.text(order[i]);
    for_each_char(text, [&](char32_t, size_t begin, size_t) {
      if (begin == 0) return;
      auto left = vocabulary.find(text.substr(0, begin)), right = vocabulary.find(text.substr(begin));
      if (left && right && usable[static_cast<size_t>(*left)] && usable[static_cast<size_t>(*right)])
        merges.push_back({*left, *right, order[i], rank});
    });
  }
  return merges;
}

}  // namespace strata::text
