#include "tensor/io/gguf.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "tensor/create.h"
#include "tensor/io/gguf_format.h"
#include "tensor/io/mapped_file.h"

namespace strata {

namespace fs = std::filesystem;

namespace {

using gguf::ElementType;
using gguf::ValueType;

constexpr int kMaxArrayDepth = 4;
constexpr uint64_t kMaxMetadataValues = 1 << 23;  // of all arrays together; each costs a Json, more than its bytes
constexpr uint32_t kMaxDims = 4;                  // ggml's
constexpr uint64_t kMaxSplits = 1000;

std::string shown(std::string_view text) {
  return std::string(text.substr(0, 200));
}

struct TensorEntry {
  GgufTensorInfo info;
  const ElementType* type;
  uint64_t offset;  // within the data section
};

// Reads the bytes before the data section. Every failure names file, offset and the field being read.
class HeaderReader {
 public:
  explicit HeaderReader(const MappedFile& file) : bytes_(file.bytes()), source_(file.path().string()) {
    metadata = Json::object(source_);
    read_preamble();
    for (uint64_t i = 0; i < pair_count_; ++i) read_pair();
    read_alignment();
    for (uint64_t i = 0; i < tensor_count_; ++i) read_tensor();
    locate_data();
  }

  Json metadata;
  std::vector<gguf::Entry> pairs;
  std::vector<TensorEntry> tensors;
  uint64_t data_start = 0;

 private:
  template <class... Args>
  void require(bool ok, fmt::format_string<Args...> text, Args&&... args) const {
    if (!ok)
      fail<FormatError>("{}: {}: at offset {}: {}", source_, field_, at_,
                        fmt::format(text, std::forward<Args>(args)...));
  }

  uint64_t left() const { return bytes_.size() - at_; }

  template <class T>
  T read() {
    require(left() >= sizeof(T), "expected {} bytes, the file ends after {}", sizeof(T), left());
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  std::string read_string() {
    auto length = read<uint64_t>();
    require(length <= left(), "string of {} bytes, the file ends after {}", length, left());
    std::string text(reinterpret_cast<const char*>(bytes_.data()) + at_, length);
    at_ += length;
    return text;
  }

  void read_preamble() {
    field_ = "magic";
    require(read<uint32_t>() == gguf::kMagic, "not a GGUF file");
    field_ = "version";
    auto version = read<uint32_t>();
    require(version == 2 || version == 3, "expected 2 or 3, got {}{}", version,
            version == 0x02000000 || version == 0x03000000 ? " (a big-endian file)" : "");
    field_ = "tensor count";
    tensor_count_ = read<uint64_t>();
    require(tensor_count_ <= bytes_.size() / 24, "{} tensors do not fit into {} bytes", tensor_count_, bytes_.size());
    field_ = "metadata count";
    pair_count_ = read<uint64_t>();
    require(pair_count_ <= bytes_.size() / 13, "{} values do not fit into {} bytes", pair_count_, bytes_.size());
  }

  void read_pair() {
    field_ = "metadata key";
    std::string key = read_string();
    field_ = fmt::format("metadata '{}'", shown(key));
    require(!metadata.contains(key), "the key stands twice");
    auto type = read<uint32_t>();
    gguf::Entry entry{key, static_cast<ValueType>(type), {}};
    if (entry.type == ValueType::array) entry.element = static_cast<ValueType>(peek());
    entry.value = read_value(type, 0);
    metadata.set(std::move(key), entry.value);
    pairs.push_back(std::move(entry));
  }

  // The element type an array begins with; nonsense is found when the array is read.
  uint32_t peek() {
    auto value = read<uint32_t>();
    at_ -= sizeof(value);
    return value;
  }

  Json read_value(uint32_t type, int depth) {
    require(type < gguf::kValueTypes, "unknown value type {}", type);
    switch (static_cast<ValueType>(type)) {
      case ValueType::u8: return Json(int64_t{read<uint8_t>()});
      case ValueType::i8: return Json(int64_t{read<int8_t>()});
      case ValueType::u16: return Json(int64_t{read<uint16_t>()});
      case ValueType::i16: return Json(int64_t{read<int16_t>()});
      case ValueType::u32: return Json(int64_t{read<uint32_t>()});
      case ValueType::i32: return Json(int64_t{read<int32_t>()});
      case ValueType::u64: return Json(read<uint64_t>());
      case ValueType::i64: return Json(read<int64_t>());
      case ValueType::f32: return Json(double{read<float>()});
      case ValueType::f64: return Json(read<double>());
      case ValueType::string: return Json(read_string());
      case ValueType::boolean: {
        auto value = read<uint8_t>();
        require(value <= 1, "a bool must be 0 or 1, got {}", value);
        return Json(value == 1);
      }
      case ValueType::array: return read_array(depth);
    }
    return {};
  }

  Json read_array(int depth) {
    require(depth < kMaxArrayDepth, "arrays nested deeper than {}", kMaxArrayDepth);
    auto type = read<uint32_t>();
    auto count = read<uint64_t>();
    require(count <= left(), "array of {} values, the file ends after {} bytes", count, left());
    array_values_ += count;
    require(array_values_ <= kMaxMetadataValues, "more than {} array values", kMaxMetadataValues);
    Json::Array items;
    for (uint64_t i = 0; i < count; ++i) items.push_back(read_value(type, depth + 1));
    return Json(std::move(items));
  }

  void read_alignment() {
    field_ = "general.alignment";
    const Json* value = metadata.find(field_);
    if (!value) return;
    require(value->is_integer(), "expected an integer, got {}", value->kind_name());
    bool ok = value->kind() == Json::Kind::integer && value->as_int() >= 8 && value->as_uint() <= gguf::kMaxAlignment &&
              (value->as_uint() & (value->as_uint() - 1)) == 0;
    require(ok, "must be a power of two from 8 to {}, got {}", gguf::kMaxAlignment, value->dump());
    alignment_ = value->as_uint();
  }

  void read_tensor() {
    field_ = "tensor name";
    std::string name = read_string();
    field_ = fmt::format("tensor '{}'", shown(name));
    auto [it, fresh] = names_.emplace(name, tensors.size());
    require(fresh, "the name stands twice");
    Dims shape = read_shape();
    const ElementType* type = read_type();
    int64_t columns = shape.empty() ? 1 : shape.back();
    require(columns % type->block_values == 0, "rows of {} must hold a multiple of {} values, got shape {}", type->name,
            type->block_values, shape);
    int64_t bytes = bytes_of(shape, *type);
    auto offset = read<uint64_t>();
    require(offset % alignment_ == 0, "data offset {} is not a multiple of the alignment {}", offset, alignment_);
    tensors.push_back({{std::move(name), std::string(type->name), shape, bytes}, type, offset});
  }

  Dims read_shape() {
    auto rank = read<uint32_t>();
    require(rank <= kMaxDims, "at most {} dimensions, got {}", kMaxDims, rank);
    Dims shape;
    for (uint32_t i = 0; i < rank; ++i) {
      auto size = read<uint64_t>();
      require(size <= uint64_t{INT64_MAX}, "size {} is out of range", size);
      shape.insert(0, static_cast<int64_t>(size));
    }
    return shape;
  }

  const ElementType* read_type() {
    auto id = read<uint32_t>();
    for (const ElementType& type : gguf::kElementTypes)
      if (type.id == id) return &type;
    require(false, "unknown element type {}", id);
    return nullptr;
  }

  int64_t bytes_of(const Dims& shape, const ElementType& type) const {
    int64_t span = type.block_bytes;  // with 1 for 0: strides are products of the sizes and must not overflow either
    bool fits = true, is_empty = false;
    for (int i = 0; i < shape.size(); ++i) {
      int64_t count = i == shape.size() - 1 ? shape[i] / type.block_values : shape[i];
      fits = fits && !__builtin_mul_overflow(span, std::max<int64_t>(count, 1), &span) &&
             span <= INT64_MAX / type.block_values;
      is_empty = is_empty || count == 0;
    }
    require(fits, "too many elements, got shape {}", shape);
    return is_empty ? 0 : span;
  }

  void locate_data() {
    field_ = "tensor data";
    data_start = (at_ + alignment_ - 1) / alignment_ * alignment_;
    uint64_t available = data_start <= bytes_.size() ? bytes_.size() - data_start : 0;
    for (const TensorEntry& entry : tensors) {
      field_ = fmt::format("tensor '{}'", shown(entry.info.name));
      auto bytes = static_cast<uint64_t>(entry.info.bytes);
      require(entry.offset <= available && bytes <= available - entry.offset,
              "{} bytes at data offset {} leave the {} bytes of data", bytes, entry.offset, available);
    }
    check_overlap();
  }

  void check_overlap() {
    std::vector<const TensorEntry*> sorted;
    for (const TensorEntry& entry : tensors)
      if (entry.info.bytes > 0) sorted.push_back(&entry);
    std::sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->offset < b->offset; });
    for (size_t i = 1; i < sorted.size(); ++i) {
      field_ = fmt::format("tensor '{}'", shown(sorted[i]->info.name));
      uint64_t end = sorted[i - 1]->offset + static_cast<uint64_t>(sorted[i - 1]->info.bytes);
      require(end <= sorted[i]->offset, "its data overlaps that of '{}'", shown(sorted[i - 1]->info.name));
    }
  }

  std::span<const std::byte> bytes_;
  std::string source_;
  std::string field_ = "magic";
  uint64_t at_ = 0;
  uint64_t tensor_count_ = 0, pair_count_ = 0, array_values_ = 0;
  uint64_t alignment_ = gguf::kDefaultAlignment;
  std::unordered_map<std::string, size_t> names_;
};

uint64_t split_number(const Json& metadata, const char* key, const fs::path& path) {
  const Json* value = metadata.find(key);
  if (!value) return 0;
  check<FormatError>(value->kind() == Json::Kind::integer && value->as_int() >= 0,
                     "{}: metadata '{}': expected a non-negative integer, got {}", path.string(), key,
                     shown(value->dump()));
  return value->as_uint();
}

}  // namespace

const char* gguf::value_type_name(ValueType type) {
  constexpr const char* kNames[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                    "bool", "string", "array", "u64", "i64", "f64"};
  return static_cast<uint32_t>(type) < kValueTypes ? kNames[static_cast<size_t>(type)] : "?";
}

struct GgufFile::State {
  struct Place {
    std::shared_ptr<const MappedFile> file;
    uint64_t offset;
    const ElementType* type;
  };
  fs::path path;
  Json metadata;
  std::vector<gguf::Entry> entries;
  std::vector<GgufTensorInfo> tensors;
  std::vector<Place> places;
  std::unordered_map<std::string, size_t> by_name;

  /// The file's tensors join ours; its metadata is returned, and kept with types if it is the first.
  Json add_file(const fs::path& file_path) {
    auto file = MappedFile::open(file_path);
    HeaderReader header(*file);
    for (TensorEntry& entry : header.tensors) {
      auto [it, fresh] = by_name.emplace(entry.info.name, tensors.size());
      check<FormatError>(fresh, "{}: tensor '{}' is also in {}", file_path.string(), shown(entry.info.name),
                         fresh ? "" : places[it->second].file->path().string());
      places.push_back({file, header.data_start + entry.offset, entry.type});
      tensors.push_back(std::move(entry.info));
    }
    if (entries.empty()) entries = std::move(header.pairs);
    return std::move(header.metadata);
  }

  // split.no, split.count, split.tensors.count: the other files stand beside the first one.
  void add_splits() {
    uint64_t count = split_number(metadata, "split.count", path);
    if (count <= 1) return;
    check<FormatError>(count <= kMaxSplits, "{}: metadata 'split.count': at most {} files, got {}", path.string(),
                       kMaxSplits, count);
    uint64_t number = split_number(metadata, "split.no", path);
    check<FormatError>(number == 0, "{}: metadata 'split.no': open the first file of a split model, this is number {}",
                       path.string(), number);
    std::string name = path.filename().string(), ending = fmt::format("-{:05}-of-{:05}.gguf", 1, count);
    check<FormatError>(name.ends_with(ending), "{}: metadata 'split.count': {} files, so the name must end in {}",
                       path.string(), count, ending);
    name.resize(name.size() - ending.size());
    for (uint64_t i = 1; i < count; ++i) {
      fs::path part = path.parent_path() / fmt::format("{}-{:05}-of-{:05}.gguf", name, i + 1, count);
      Json other = add_file(part);
      uint64_t part_count = split_number(other, "split.count", part),
               part_number = split_number(other, "split.no", part);
      check<FormatError>(part_count == count && part_number == i,
                         "{}: metadata 'split.no', 'split.count': expected {} of {}, got {} of {}", part.string(), i,
                         count, part_number, part_count);
    }
    uint64_t total = split_number(metadata, "split.tensors.count", path);
    check<FormatError>(total == tensors.size(), "{}: metadata 'split.tensors.count': {}, but the files hold {} tensors",
                       path.string(), total, tensors.size());
  }
};

GgufFile GgufFile::open(const fs::path& path) {
  auto state = std::make_shared<State>();
  state->path = path;
  state->metadata = state->add_file(path);
  state->add_splits();
  return GgufFile(std::move(state));
}

const Json& GgufFile::metadata() const {
  return state_->metadata;
}
const std::vector<gguf::Entry>& GgufFile::entries() const {
  return state_->entries;
}
const std::vector<GgufTensorInfo>& GgufFile::tensors() const {
  return state_->tensors;
}

const GgufTensorInfo* GgufFile::find(const std::string& name) const {
  auto it = state_->by_name.find(name);
  return it == state_->by_name.end() ? nullptr : &state_->tensors[it->second];
}

std::variant<Tensor, QuantizedWeight> GgufFile::tensor(const std::string& name) const {
  auto it = state_->by_name.find(name);
  check(it != state_->by_name.end(), "{}: has no tensor '{}'", state_->path.string(), shown(name));
  const GgufTensorInfo& info = state_->tensors[it->second];
  const State::Place& place = state_->places[it->second];
  check<FormatError>(place.type->dtype || place.type->block, "{}: tensor '{}': element type {} cannot be read",
                     place.file->path().string(), shown(name), info.type);
  auto storage = Storage::borrow(place.file->bytes().data() + place.offset, info.bytes, place.file);
  if (place.type->dtype) return Tensor(storage, Layout::contiguous(info.shape), *place.type->dtype);
  QuantizedWeight w;
  w.type = *place.type->block;
  w.columns = info.shape.back();
  int64_t row_bytes = w.columns / place.type->block_values * place.type->block_bytes;
  w.rows = info.bytes == 0 ? 0 : info.bytes / row_bytes;
  w.bytes = Tensor(storage, Layout::contiguous({w.rows, row_bytes}), DType::u8);
  return w;
}

Tensor GgufFile::tensor_f32(const std::string& name) const {
  auto found = tensor(name);
  if (auto* plain = std::get_if<Tensor>(&found)) return clone_data(*plain, DType::f32);
  const auto& w = std::get<QuantizedWeight>(found);
  Tensor y = empty(find(name)->shape);  // [..., columns]
  Tensor rows = alias(y, Layout::contiguous({w.rows, w.columns}));
  kernels::dequantize(Device::cpu(), w, 0, rows);
  return y;
}

}  // namespace strata
