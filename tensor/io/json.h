// A JSON document as a plain value: what config.json, tokenizer.json, safetensors headers and run folders need.
// Integers stay 64-bit (never through double), object members keep the file's order, duplicate keys are an error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace strata {

class Json {
 public:
  enum class Kind { null, boolean, integer, unsigned_integer, real, string, array, object };
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;

  Json() = default;  // null
  Json(bool value) : value_(value) {}
  Json(int value) : value_(int64_t{value}) {}
  Json(long value) : value_(int64_t{value}) {}
  Json(long long value) : value_(int64_t{value}) {}
  Json(unsigned value) : value_(int64_t{value}) {}
  Json(unsigned long value);
  Json(double value) : value_(value) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(Array value) : value_(std::make_shared<Array>(std::move(value))) {}

  static Json array() { return Json(Array{}); }
  /// `source` names the object in errors, as parse does.
  static Json object(std::string source = "");

  /// Parses one document. `source` names the file in errors. Throws FormatError with the byte offset for malformed
  /// text, invalid UTF-8, duplicate keys, nesting deeper than 256 or trailing characters.
  static Json parse(std::string_view text, const std::string& source);
  static Json parse_file(const std::filesystem::path& path);

  Kind kind() const { return static_cast<Kind>(value_.index()); }
  const char* kind_name() const;
  bool is_null() const { return kind() == Kind::null; }
  bool is_bool() const { return kind() == Kind::boolean; }
  bool is_integer() const { return kind() == Kind::integer || kind() == Kind::unsigned_integer; }
  bool is_number() const { return is_integer() || kind() == Kind::real; }
  bool is_string() const { return kind() == Kind::string; }
  bool is_array() const { return kind() == Kind::array; }
  bool is_object() const { return kind() == Kind::object; }

  /// Typed reads of this value; FormatError if the kind differs (as_double takes any number; as_int refuses
  /// values outside int64, as_uint negative ones).
  bool as_bool() const;
  int64_t as_int() const;
  uint64_t as_uint() const;
  double as_double() const;
  const std::string& as_string() const;
  const Array& items() const;
  const std::vector<Member>& members() const;
  size_t size() const;  // of an array or object

  /// Member access. find: nullptr if absent. at: FormatError naming source and field if absent.
  const Json* find(std::string_view key) const;
  const Json& at(std::string_view key) const;
  bool contains(std::string_view key) const { return find(key) != nullptr; }
  /// get<T>: member of type T (bool, int64_t, uint64_t, double, std::string); errors name source and field.
  /// get_or: the fallback when the member is absent or null.
  template <class T>
  T get(std::string_view key) const;
  template <class T>
  T get_or(std::string_view key, T fallback) const;

  /// Building. set replaces an existing member in place. Both return *this for chaining.
  Json& set(std::string key, Json value);
  Json& push(Json value);

  /// Text. indent < 0: one line with ", " and ": " (as Python's json.dumps); otherwise indented.
  /// Non-finite numbers are written as null. Non-ASCII text is written as it is (UTF-8).
  std::string dump(int indent = -1) const;
  /// The document's name given to parse ("" for built values).
  std::string source() const;

  friend bool operator==(const Json& a, const Json& b);

 private:
  struct Object {
    std::vector<Member> members;
    std::unordered_map<std::string, size_t> index;  // filled once the object has more than 16 members
    std::shared_ptr<const std::string> source;
    const Json* find(std::string_view key) const;
    bool add(std::string key, Json value);  // false: the key exists already
  };
  friend class JsonBuilder;
  void write(std::string& out, int indent, int level) const;

  // Arrays and objects are shared and copied on write: copying a Json is cheap.
  std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, std::shared_ptr<Array>,
               std::shared_ptr<Object>>
      value_;
};

}  // namespace strata
