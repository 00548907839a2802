#include "apps/common/flag_binding.h"

#include <charconv>
#include <cmath>

#include "tensor/error.h"

namespace strata::apps {

namespace {

template <class T>
T parse_integer(const std::string& text) {
  T value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  check<UsageError>(error != std::errc::result_out_of_range, "number out of range, got '{}'", text);
  check<UsageError>(error == std::errc() && end == text.data() + text.size(), "expected a whole number{}, got '{}'",
                    std::is_unsigned_v<T> ? " of at least 0" : "", text);
  return value;
}

double parse_double(const std::string& text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  check<UsageError>(error != std::errc::result_out_of_range, "number out of range, got '{}'", text);
  check<UsageError>(error == std::errc() && end == text.data() + text.size(), "expected a number, got '{}'", text);
  check<UsageError>(std::isfinite(value), "expected a finite number, got '{}'", text);
  return value;
}

void parse(const std::string& text, int& value) {
  value = parse_integer<int>(text);
}
void parse(const std::string& text, int64_t& value) {
  value = parse_integer<int64_t>(text);
}
void parse(const std::string& text, uint64_t& value) {
  value = parse_integer<uint64_t>(text);
}
void parse(const std::string& text, double& value) {
  value = parse_double(text);
}
void parse(const std::string& text, std::string& value) {
  value = text;
}
void parse(const std::string& text, std::filesystem::path& value) {
  check<UsageError>(!text.empty(), "expected a path, got ''");
  value = text;
}
void parse(const std::string& text, bool& value) {
  bool yes = text == "true" || text == "yes" || text == "on" || text == "1";
  bool no = text == "false" || text == "no" || text == "off" || text == "0";
  check<UsageError>(yes || no, "expected true or false, got '{}'", text);
  value = yes;
}

std::string show(bool value) {
  return value ? "on" : "off";
}
std::string show(double value) {
  return fmt::format("{}", value);
}
std::string show(int64_t value) {
  return fmt::format("{}", value);
}
std::string show(int value) {
  return fmt::format("{}", value);
}
std::string show(uint64_t value) {
  return fmt::format("{}", value);
}
std::string show(const std::string& value) {
  return value;
}
std::string show(const std::filesystem::path& value) {
  return value.string();
}

Json to_json(const std::filesystem::path& value) {
  return value.empty() ? Json() : Json(value.string());
}
template <class T>
Json to_json(const T& value) {
  return Json(value);
}

template <class T>
FlagBinding bind_value(T& value, const char* placeholder) {
  FlagBinding binding;
  binding.placeholder = placeholder;
  binding.assign = [&value](const std::string& text) { parse(text, value); };
  binding.show = [&value] { return show(value); };
  binding.json = [&value] { return to_json(value); };
  return binding;
}

template <class T>
FlagBinding bind_list(std::vector<T>& values, const char* placeholder, bool splits) {
  FlagBinding binding;
  binding.placeholder = placeholder;
  binding.list = true;
  binding.splits = splits;
  binding.assign = [&values](const std::string& text) { parse(text, values.emplace_back()); };
  binding.clear = [&values] { values.clear(); };
  binding.show = [&values] {
    std::string out;
    for (const T& value : values) out += (out.empty() ? "" : ",") + show(value);
    return out;
  };
  binding.json = [&values] {
    Json out = Json::array();
    for (const T& value : values) out.push(to_json(value));
    return out;
  };
  return binding;
}

}  // namespace

FlagBinding flag_binding(bool& value) {
  return bind_value(value, "");
}
FlagBinding flag_binding(int& value) {
  return bind_value(value, "N");
}
FlagBinding flag_binding(int64_t& value) {
  return bind_value(value, "N");
}
FlagBinding flag_binding(uint64_t& value) {
  return bind_value(value, "N");
}
FlagBinding flag_binding(double& value) {
  return bind_value(value, "X");
}
FlagBinding flag_binding(std::string& value) {
  return bind_value(value, "TEXT");
}
FlagBinding flag_binding(std::filesystem::path& value) {
  return bind_value(value, "PATH");
}
FlagBinding flag_binding(std::vector<std::string>& value) {
  return bind_list(value, "TEXT", false);
}
FlagBinding flag_binding(std::vector<int64_t>& value) {
  return bind_list(value, "N,N,...", true);
}
FlagBinding flag_binding(std::vector<double>& value) {
  return bind_list(value, "X,X,...", true);
}
FlagBinding flag_binding(std::vector<std::filesystem::path>& value) {
  return bind_list(value, "PATH", false);
}

}  // namespace strata::apps
