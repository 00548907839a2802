// How the text of a flag becomes the value of a variable and back, for every type a flag may have.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tensor/io/json.h"

namespace strata::apps {

struct FlagBinding {
  std::string placeholder;                         // "NUMBER"; empty for a switch
  bool list = false;                               // takes several values
  bool splits = false;                             // a list that is also split at commas
  std::vector<std::string> choices;                // the only texts allowed, if not empty
  std::function<void(const std::string&)> assign;  // throws UsageError ("expected a number, got 'x'"); lists: append
  std::function<void()> clear;                     // lists: drop the default before the first value
  std::function<std::string()> show;               // current value for --help; "" if there is none
  std::function<Json()> json;                      // current value for run.json
};

FlagBinding flag_binding(bool& value);
FlagBinding flag_binding(int& value);
FlagBinding flag_binding(int64_t& value);
FlagBinding flag_binding(uint64_t& value);
FlagBinding flag_binding(double& value);  // finite numbers only
FlagBinding flag_binding(std::string& value);
FlagBinding flag_binding(std::filesystem::path& value);
FlagBinding flag_binding(std::vector<std::string>& value);  // one text per use of the flag
FlagBinding flag_binding(std::vector<int64_t>& value);      // --sizes 1,2,3
FlagBinding flag_binding(std::vector<double>& value);
FlagBinding flag_binding(std::vector<std::filesystem::path>& value);

/// No default: --help shows none, and the variable stays empty unless the flag is given.
template <class T>
FlagBinding flag_binding(std::optional<T>& value) {
  auto inner = std::make_shared<T>(value.value_or(T{}));
  FlagBinding binding = flag_binding(*inner);
  binding.assign = [inner, &value, assign = binding.assign](const std::string& text) {
    assign(text);
    value = *inner;
  };
  binding.show = [inner, &value, show = binding.show] { return value ? show() : std::string(); };
  binding.json = [inner, &value, json = binding.json] { return value ? json() : Json(); };
  return binding;
}

/// A choice among named values (an enum, usually).
template <class E>
FlagBinding flag_binding(E& value, const std::vector<std::pair<std::string, E>>& names) {
  FlagBinding binding;
  for (const auto& [name, known] : names) binding.choices.push_back(name);
  binding.placeholder = "NAME";
  binding.show = [&value, names] {
    for (const auto& [name, known] : names)
      if (known == value) return name;
    return std::string();
  };
  binding.json = [show = binding.show] { return Json(show()); };
  binding.assign = [&value, names](const std::string& text) {
    for (const auto& [name, known] : names)
      if (name == text) value = known;
  };
  return binding;
}

}  // namespace strata::apps
