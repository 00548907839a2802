#include "tensor/io/json.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tensor/error.h"

namespace strata {

namespace {
constexpr size_t kMaxDepth = 256;
constexpr size_t kIndexFrom = 16;
}  // namespace

// Receives nlohmann's SAX events and builds our tree, so that duplicate keys and depth are seen as they come.
class JsonBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit JsonBuilder(std::string source) : source_(std::make_shared<const std::string>(std::move(source))) {}

  bool null() override { return add(Json()); }
  bool boolean(bool v) override { return add(Json(v)); }
  bool number_integer(int64_t v) override { return add(Json(static_cast<long>(v))); }
  bool number_unsigned(uint64_t v) override { return add(Json(static_cast<unsigned long>(v))); }
  bool number_float(double v, const std::string& text) override {
    check<FormatError>(std::isfinite(v), "{}: number {} is out of range", *source_, text.substr(0, 40));
    return add(Json(v));
  }
  bool string(std::string& v) override { return add(Json(std::move(v))); }
  bool binary(nlohmann::json::binary_t&) override { return false; }
  bool key(std::string& k) override {
    keys_.back() = std::move(k);
    return true;
  }
  bool start_object(size_t) override {
    auto object = std::make_shared<Json::Object>();
    object->source = source_;
    Json json;
    json.value_ = std::move(object);
    return open(std::move(json));
  }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& e) override {
    std::string text = e.what();
    if (auto end = text.find("] "); end != std::string::npos) text = text.substr(end + 2);  // the library's own code
    if (auto read = text.find("; last read: "); read != std::string::npos && text.size() - read > 100)
      text.resize(read);  // a long string's text does not help to find it
    fail<FormatError>("{}: not valid JSON at byte {}: {}", *source_, position, text);
  }

  Json result;

 private:
  bool open(Json json) {
    check<FormatError>(open_.size() < kMaxDepth, "{}: nested deeper than {} levels", *source_, kMaxDepth);
    open_.push_back(std::move(json));
    keys_.emplace_back();
    return true;
  }
  bool close() {
    Json done = std::move(open_.back());
    open_.pop_back();
    keys_.pop_back();
    return add(std::move(done));
  }
  bool add(Json json) {
    if (open_.empty()) {
      result = std::move(json);
    } else if (open_.back().is_array()) {
      std::get<std::shared_ptr<Json::Array>>(open_.back().value_)->push_back(std::move(json));
    } else {
      auto& object = *std::get<std::shared_ptr<Json::Object>>(open_.back().value_);
      std::string key = std::move(keys_.back());
      std::string shown = key.substr(0, 80);
      check<FormatError>(object.add(std::move(key), std::move(json)), "{}: field '{}' stands twice", *source_, shown);
    }
    return true;
  }

  std::shared_ptr<const std::string> source_;
  std::vector<Json> open_;
  std::vector<std::string> keys_;
};

Json::Json(unsigned long value) {
  if (value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    value_ = static_cast<int64_t>(value);
  else
    value_ = uint64_t{value};
}

Json Json::object(std::string source) {
  auto object = std::make_shared<Object>();
  if (!source.empty()) object->source = std::make_shared<const std::string>(std::move(source));
  Json json;
  json.value_ = std::move(object);
  return json;
}

Json Json::parse(std::string_view text, const std::string& source) {
  JsonBuilder builder(source);
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);  // a byte order mark, as Windows editors leave
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return std::move(builder.result);
}

Json Json::parse_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  check<Error>(in.good() && !std::filesystem::is_directory(path), "{}: cannot open file", path.string());
  std::ostringstream text;
  text << in.rdbuf();
  return parse(text.str(), path.string());
}

const char* Json::kind_name() const {
  static constexpr const char* kNames[] = {"null", "bool", "integer", "integer", "number", "string", "array", "object"};
  return kNames[value_.index()];
}

bool Json::as_bool() const {
  check<FormatError>(is_bool(), "expected bool, got {}", kind_name());
  return std::get<bool>(value_);
}

int64_t Json::as_int() const {
  check<FormatError>(kind() == Kind::integer, "expected integer (64-bit), got {}", kind_name());
  return std::get<int64_t>(value_);
}

uint64_t Json::as_uint() const {
  if (kind() == Kind::unsigned_integer) return std::get<uint64_t>(value_);
  int64_t v = as_int();
  check<FormatError>(v >= 0, "expected non-negative integer, got {}", v);
  return static_cast<uint64_t>(v);
}

double Json::as_double() const {
  if (kind() == Kind::integer) return static_cast<double>(std::get<int64_t>(value_));
  if (kind() == Kind::unsigned_integer) return static_cast<double>(std::get<uint64_t>(value_));
  check<FormatError>(kind() == Kind::real, "expected number, got {}", kind_name());
  return std::get<double>(value_);
}

const std::string& Json::as_string() const {
  check<FormatError>(is_string(), "expected string, got {}", kind_name());
  return std::get<std::string>(value_);
}

const Json::Array& Json::items() const {
  check<FormatError>(is_array(), "expected array, got {}", kind_name());
  return *std::get<std::shared_ptr<Array>>(value_);
}

const std::vector<Json::Member>& Json::members() const {
  check<FormatError>(is_object(), "expected object, got {}", kind_name());
  return std::get<std::shared_ptr<Object>>(value_)->members;
}

size_t Json::size() const {
  return is_object() ? members().size() : items().size();
}

const Json* Json::Object::find(std::string_view key) const {
  if (!index.empty()) {
    auto it = index.find(std::string(key));
    return it == index.end() ? nullptr : &members[it->second].second;
  }
  for (const auto& [name, value] : members)
    if (name == key) return &value;
  return nullptr;
}

bool Json::Object::add(std::string key, Json value) {
  if (find(key)) return false;
  members.emplace_back(std::move(key), std::move(value));
  if (members.size() == kIndexFrom)
    for (size_t i = 0; i < members.size(); ++i) index.emplace(members[i].first, i);
  else if (members.size() > kIndexFrom)
    index.emplace(members.back().first, members.size() - 1);
  return true;
}

const Json* Json::find(std::string_view key) const {
  if (!is_object()) return nullptr;
  return std::get<std::shared_ptr<Object>>(value_)->find(key);
}

const Json& Json::at(std::string_view key) const {
  check<FormatError>(is_object(), "{}: expected an object with field '{}', got {}", source(), key, kind_name());
  const Json* found = find(key);
  check<FormatError>(found != nullptr, "{}: field '{}' is missing", source(), key);
  return *found;
}

namespace {
template <class T>
T read_as(const Json& json) {
  if constexpr (std::is_same_v<T, bool>) return json.as_bool();
  if constexpr (std::is_same_v<T, int64_t>) return json.as_int();
  if constexpr (std::is_same_v<T, uint64_t>) return json.as_uint();
  if constexpr (std::is_same_v<T, double>) return json.as_double();
  if constexpr (std::is_same_v<T, std::string>) return json.as_string();
}
}  // namespace

template <class T>
T Json::get(std::string_view key) const {
  const Json& member = at(key);
  try {
    return read_as<T>(member);
  } catch (const FormatError& e) {
    fail<FormatError>("{}: field '{}': {}", source(), key, e.what());
  }
}

template <class T>
T Json::get_or(std::string_view key, T fallback) const {
  const Json* member = find(key);
  if (!member || member->is_null()) return fallback;
  return get<T>(key);
}

#define STRATA_JSON_TYPE(T)                        \
  template T Json::get<T>(std::string_view) const; \
  template T Json::get_or<T>(std::string_view, T) const;
STRATA_JSON_TYPE(bool)
STRATA_JSON_TYPE(int64_t)
STRATA_JSON_TYPE(uint64_t)
STRATA_JSON_TYPE(double)
STRATA_JSON_TYPE(std::string)
#undef STRATA_JSON_TYPE

Json& Json::set(std::string key, Json value) {
  if (is_null()) *this = object();
  check<FormatError>(is_object(), "expected object, got {}", kind_name());
  auto& shared = std::get<std::shared_ptr<Object>>(value_);
  if (shared.use_count() > 1) shared = std::make_shared<Object>(*shared);
  if (const Json* old = shared->find(key))
    const_cast<Json&>(*old) = std::move(value);
  else
    shared->add(std::move(key), std::move(value));
  return *this;
}

Json& Json::push(Json value) {
  if (is_null()) *this = array();
  check<FormatError>(is_array(), "expected array, got {}", kind_name());
  auto& shared = std::get<std::shared_ptr<Array>>(value_);
  if (shared.use_count() > 1) shared = std::make_shared<Array>(*shared);
  shared->push_back(std::move(value));
  return *this;
}

namespace {
void write_string(std::string& out, std::string_view text) {
  out += '"';
  for (char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20)
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        else
          out += c;
    }
  }
  out += '"';
}

std::string number_text(double v) {
  if (!std::isfinite(v)) return "null";
  std::string text = fmt::format("{}", v);  // shortest text that reads back to the same double
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}
}  // namespace

void Json::write(std::string& out, int indent, int level) const {
  auto line = [&](int depth) {
    if (indent >= 0) out.append(1, '\n').append(static_cast<size_t>(indent * depth), ' ');
  };
  const char* comma = indent >= 0 ? "," : ", ";
  switch (kind()) {
    case Kind::null: out += "null"; break;
    case Kind::boolean: out += std::get<bool>(value_) ? "true" : "false"; break;
    case Kind::integer: out += std::to_string(std::get<int64_t>(value_)); break;
    case Kind::unsigned_integer: out += std::to_string(std::get<uint64_t>(value_)); break;
    case Kind::real: out += number_text(std::get<double>(value_)); break;
    case Kind::string: write_string(out, std::get<std::string>(value_)); break;
    case Kind::array: {
      out += '[';
      bool first = true;
      for (const Json& item : items()) {
        if (!first) out += comma;
        first = false;
        line(level + 1);
        item.write(out, indent, level + 1);
      }
      if (!first) line(level);
      out += ']';
      break;
    }
    case Kind::object: {
      out += '{';
      bool first = true;
      for (const auto& [key, value] : members()) {
        if (!first) out += comma;
        first = false;
        line(level + 1);
        write_string(out, key);
        out += ": ";
        value.write(out, indent, level + 1);
      }
      if (!first) line(level);
      out += '}';
      break;
    }
  }
}

std::string Json::dump(int indent) const {
  std::string out;
  write(out, indent, 0);
  return out;
}

std::string Json::source() const {
  if (!is_object()) return "";
  const auto& shared = std::get<std::shared_ptr<Object>>(value_);
  return shared->source ? *shared->source : "";
}

bool operator==(const Json& a, const Json& b) {
  if (a.value_.index() != b.value_.index()) return false;
  if (a.is_array()) return a.items() == b.items();
  if (a.is_object()) return a.members() == b.members();
  return a.value_ == b.value_;
}

}  // namespace strata
