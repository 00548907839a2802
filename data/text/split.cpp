#include "data/text/split.h"

namespace strata::text {

Behavior read_behavior(const Json& json, Behavior fallback, const Place& place) {
  const Json* member = json.find("behavior");
  if (!member || member->is_null()) return fallback;
  const std::string& name = read_string(*member, place.at("behavior"));
  if (name == "Removed") return Behavior::removed;
  if (name == "Isolated") return Behavior::isolated;
  if (name == "MergedWithPrevious") return Behavior::merged_with_previous;
  if (name == "MergedWithNext") return Behavior::merged_with_next;
  if (name == "Contiguous") return Behavior::contiguous;
  place.at("behavior").fail("unknown behavior '{}'", shown(name));
}

void arrange(std::vector<Span>& spans, Behavior behavior) {
  if (behavior == Behavior::isolated) return;
  if (behavior == Behavior::removed) {
    std::erase_if(spans, [](const Span& s) { return s.match; });
    return;
  }
  // The others join neighbours: `kept` spans so far, `last` the kind of the span before.
  std::vector<Span> kept;
  auto join = [&](const Span& s) {
    kept.back().begin = std::min(kept.back().begin, s.begin);
    kept.back().end = std::max(kept.back().end, s.end);
  };
  bool last = false;
  auto take = [&](const Span& s) {
    bool joins = !kept.empty() && (behavior == Behavior::contiguous ? s.match == last : s.match && !last);
    if (joins)
      join(s);
    else
      kept.push_back(s);
    last = s.match;
  };
  if (behavior == Behavior::merged_with_next) {
    for (size_t i = spans.size(); i-- > 0;) take(spans[i]);
    spans.assign(kept.rbegin(), kept.rend());
  } else {
    for (const Span& s : spans) take(s);
    spans = std::move(kept);
  }
}

}  // namespace strata::text
