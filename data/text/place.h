// Where in a tokenizer file we are, so that every error names the file and the field.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "tensor/error.h"
#include "tensor/io/json.h"

namespace strata::text {

struct Place {
  std::string file;
  std::string field;

  Place at(std::string_view name) const {
    return {file, field.empty() ? std::string(name) : fmt::format("{}.{}", field, name)};
  }
  Place at(size_t index) const { return {file, fmt::format("{}[{}]", field, index)}; }

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) const {
    std::string what = fmt::format(text, std::forward<Args>(args)...);
    if (field.empty()) throw FormatError(fmt::format("{}: {}", file, what));
    throw FormatError(fmt::format("{}: field '{}': {}", file, field, what));
  }
  template <class... Args>
  void check(bool ok, fmt::format_string<Args...> text, Args&&... args) const {
    if (!ok) fail(text, std::forward<Args>(args)...);
  }
};

/// A value from a file as it is shown in an error: short, whatever the file holds.
inline std::string shown(std::string_view text) {
  return text.size() <= 60 ? std::string(text) : fmt::format("{}...", text.substr(0, 60));
}

inline const std::string& read_string(const Json& json, const Place& place) {
  place.check(json.is_string(), "expected string, got {}", json.kind_name());
  return json.as_string();
}

inline const Json::Array& read_array(const Json& json, const Place& place) {
  place.check(json.is_array(), "expected array, got {}", json.kind_name());
  return json.items();
}

inline const Json& read_member(const Json& json, std::string_view key, const Place& place) {
  place.check(json.is_object(), "expected object, got {}", json.kind_name());
  const Json* member = json.find(key);
  place.at(key).check(member != nullptr, "is missing");
  return *member;
}

inline bool read_bool(const Json& json, std::string_view key, bool fallback, const Place& place) {
  const Json* member = json.find(key);
  if (!member || member->is_null()) return fallback;
  place.at(key).check(member->is_bool(), "expected bool, got {}", member->kind_name());
  return member->as_bool();
}

/// A token id: an integer in [0, 2^31).
inline int32_t read_id(const Json& json, const Place& place) {
  place.check(json.kind() == Json::Kind::integer, "expected an id, got {}", json.kind_name());
  int64_t id = json.as_int();
  place.check(id >= 0 && id <= std::numeric_limits<int32_t>::max(), "id must be in [0, 2^31), got {}", id);
  return static_cast<int32_t>(id);
}

}  // namespace strata::text
