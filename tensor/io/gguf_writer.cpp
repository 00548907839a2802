#include "tensor/io/gguf_writer.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "tensor/create.h"
#include "tensor/io/atomic_file.h"

namespace strata {

namespace {

using gguf::ElementType;
using gguf::ValueType;

constexpr size_t kMaxTensorName = 63;
constexpr int kMaxDims = 4;

uint64_t padding(uint64_t at, uint64_t alignment) {
  return (alignment - at % alignment) % alignment;
}

// The bytes before the data section.
class HeaderWriter {
 public:
  explicit HeaderWriter(std::string file) : file_(std::move(file)) {}

  std::string bytes;

  template <class T>
  void put(T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  void put_string(const std::string& text) {
    put<uint64_t>(text.size());
    bytes += text;
  }

  void put_entry(const gguf::Entry& entry) {
    require(seen_.insert(entry.key).second, entry.key, "the key stands twice");
    put_string(entry.key);
    put(static_cast<uint32_t>(entry.type));
    if (entry.type != ValueType::array) return put_value(entry.key, entry.type, entry.value);
    require(entry.value.is_array(), entry.key, "expected an array");
    require(entry.element != ValueType::array, entry.key, "arrays of arrays cannot be written");
    put(static_cast<uint32_t>(entry.element));
    put<uint64_t>(entry.value.size());
    for (const Json& item : entry.value.items()) put_value(entry.key, entry.element, item);
  }

 private:
  void require(bool ok, const std::string& key, const std::string& what) const {
    check(ok, "write_gguf: {}: metadata '{}': {}", file_, key, what);
  }

  void put_value(const std::string& key, ValueType type, const Json& value) {
    switch (type) {
      case ValueType::u8: return put_integer<uint8_t>(key, type, value);
      case ValueType::i8: return put_integer<int8_t>(key, type, value);
      case ValueType::u16: return put_integer<uint16_t>(key, type, value);
      case ValueType::i16: return put_integer<int16_t>(key, type, value);
      case ValueType::u32: return put_integer<uint32_t>(key, type, value);
      case ValueType::i32: return put_integer<int32_t>(key, type, value);
      case ValueType::i64: return put_integer<int64_t>(key, type, value);
      case ValueType::u64:
        require(value.is_integer() && (value.kind() == Json::Kind::unsigned_integer || value.as_int() >= 0), key,
                "expected u64, got " + value.dump());
        return put(value.as_uint());
      case ValueType::f32:
        require(value.is_number(), key, "expected f32, got " + value.dump());
        return put(static_cast<float>(value.as_double()));
      case ValueType::f64:
        require(value.is_number(), key, "expected f64, got " + value.dump());
        return put(value.as_double());
      case ValueType::boolean:
        require(value.is_bool(), key, "expected bool, got " + value.dump());
        return put<uint8_t>(value.as_bool() ? 1 : 0);
      case ValueType::string:
        require(value.is_string(), key, "expected string, got " + value.dump());
        return put_string(value.as_string());
      case ValueType::array: break;
    }
    require(false, key, "unknown value type");
  }

  template <class T>
  void put_integer(const std::string& key, ValueType type, const Json& value) {
    bool ok = value.kind() == Json::Kind::integer && value.as_int() >= int64_t{std::numeric_limits<T>::min()} &&
              value.as_int() <= int64_t{std::numeric_limits<T>::max()};
    require(ok, key, std::string("expected ") + gguf::value_type_name(type) + ", got " + value.dump());
    put(static_cast<T>(value.as_int()));
  }

  std::string file_;
  std::set<std::string> seen_;
};

struct Part {
  const GgufTensor* tensor;
  const ElementType* type;
  Dims shape;
  Tensor elements;  // what is written, row-major bytes of the type
};

const ElementType* element_type(const GgufTensor& t) {
  for (const ElementType& type : gguf::kElementTypes) {
    if (const auto* plain = std::get_if<Tensor>(&t.data)) {
      if (type.dtype && *type.dtype == plain->dtype()) return &type;
    } else if (type.block && *type.block == std::get<QuantizedWeight>(t.data).type) {
      return &type;
    }
  }
  return nullptr;
}

Part part_of(const std::string& file, const GgufTensor& t) {
  const auto* plain = std::get_if<Tensor>(&t.data);
  const auto* packed = std::get_if<QuantizedWeight>(&t.data);
  check(plain ? plain->defined() : packed->bytes.defined(), "write_gguf: {}: tensor '{}' is undefined", file, t.name);
  check(!t.name.empty() && t.name.size() <= kMaxTensorName, "write_gguf: {}: tensor '{}': name must have 1 to {} bytes",
        file, t.name, kMaxTensorName);
  const ElementType* type = element_type(t);
  check(type != nullptr, "write_gguf: {}: tensor '{}': GGUF has no type for {}", file, t.name,
        plain ? dtype_name(plain->dtype()) : "?");
  Part part{&t, type, t.shape, plain ? *plain : packed->bytes};
  Dims own = plain ? plain->shape() : Dims{packed->rows, packed->columns};
  if (part.shape.empty()) part.shape = own;
  bool same_rows = plain ? part.shape == own : part.shape.back() == packed->columns && numel(part.shape) == numel(own);
  check(same_rows && part.shape.size() <= kMaxDims, "write_gguf: {}: tensor '{}': cannot have shape {}, got {}", file,
        t.name, part.shape, own);
  check(plain || packed->bytes.numel() == numel(own) / type->block_values * type->block_bytes,
        "write_gguf: {}: tensor '{}': {} {} does not have {} bytes", file, t.name, type->name, own,
        part.elements.numel());
  return part;
}

uint64_t alignment_of(const std::string& file, const std::vector<gguf::Entry>& metadata) {
  for (const gguf::Entry& entry : metadata) {
    if (entry.key != "general.alignment") continue;
    int64_t value = entry.value.kind() == Json::Kind::integer ? entry.value.as_int() : 0;
    bool ok = entry.type == ValueType::u32 && value >= 8 && value <= static_cast<int64_t>(gguf::kMaxAlignment) &&
              (value & (value - 1)) == 0;
    check(ok, "write_gguf: {}: metadata 'general.alignment': must be a u32 power of two from 8 to {}, got {}", file,
          gguf::kMaxAlignment, entry.value.dump());
    return static_cast<uint64_t>(value);
  }
  return gguf::kDefaultAlignment;
}

void write_data(AtomicFile& file, const Part& part, uint64_t alignment) {
  const Tensor& t = part.elements;
  bool direct = t.device().is_cpu() && t.is_contiguous();
  Tensor host = direct ? t : empty(t.shape(), {t.dtype(), Device::cpu()});
  if (!direct) copy_(host, t);
  auto bytes = static_cast<size_t>(host.bytes());
  if (bytes > 0) file.write(host.raw_data(), bytes);
  file.write(std::string(padding(bytes, alignment), '\0'));
}

}  // namespace

void write_gguf(const std::filesystem::path& path, const std::vector<gguf::Entry>& metadata,
                const std::vector<GgufTensor>& tensors) {
  std::string name = path.string();
  uint64_t alignment = alignment_of(name, metadata);
  HeaderWriter header(name);
  header.put(gguf::kMagic);
  header.put(gguf::kVersion);
  header.put<uint64_t>(tensors.size());
  header.put<uint64_t>(metadata.size());
  for (const gguf::Entry& entry : metadata) header.put_entry(entry);
  std::vector<Part> parts;
  std::set<std::string_view> seen;
  uint64_t data = 0;
  for (const GgufTensor& tensor : tensors) {
    check(seen.insert(tensor.name).second, "write_gguf: {}: two tensors are called '{}'", name, tensor.name);
    const Part& part = parts.emplace_back(part_of(name, tensor));
    header.put_string(tensor.name);
    header.put(static_cast<uint32_t>(part.shape.size()));
    for (int i = part.shape.size() - 1; i >= 0; --i) header.put(static_cast<uint64_t>(part.shape[i]));
    header.put(part.type->id);
    header.put(data);
    auto bytes = static_cast<uint64_t>(part.elements.bytes());
    data += bytes + padding(bytes, alignment);
  }
  header.bytes.append(padding(header.bytes.size(), alignment), '\0');
  AtomicFile file(path, header.bytes.size() + data);
  file.write(header.bytes);
  for (const Part& part : parts) write_data(file, part, alignment);
  file.commit();
}

}  // namespace strata
