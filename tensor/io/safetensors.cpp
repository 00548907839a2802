#include "tensor/io/safetensors.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "tensor/create.h"
#include "tensor/io/json.h"
#include "tensor/io/mapped_file.h"

namespace strata {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kMaxHeader = 100'000'000;  // the reference implementation's limit
constexpr size_t kMaxShards = 1000;
constexpr const char* kIndexName = "model.safetensors.index.json";

struct ElementType {
  std::string_view name;
  uint64_t bits;
  std::optional<DType> dtype;  // none: the format knows it, this library does not
};

constexpr ElementType kElementTypes[] = {
    {"F64", 64, DType::f64},
    {"F32", 32, DType::f32},
    {"F16", 16, DType::f16},
    {"BF16", 16, DType::bf16},
    {"I64", 64, DType::i64},
    {"I32", 32, DType::i32},
    {"I8", 8, DType::i8},
    {"U8", 8, DType::u8},
    {"BOOL", 8, DType::boolean},
    {"I16", 16, std::nullopt},
    {"U16", 16, std::nullopt},
    {"U32", 32, std::nullopt},
    {"U64", 64, std::nullopt},
    {"C64", 64, std::nullopt},
    {"F8_E4M3", 8, std::nullopt},
    {"F8_E5M2", 8, std::nullopt},
    {"F8_E8M0", 8, std::nullopt},
    {"F8_E4M3FNUZ", 8, std::nullopt},
    {"F8_E5M2FNUZ", 8, std::nullopt},
    {"F6_E2M3", 6, std::nullopt},
    {"F6_E3M2", 6, std::nullopt},
    {"F4", 4, std::nullopt},
};

std::string shown(std::string_view text) {
  return std::string(text.substr(0, 200));
}

struct Entry {
  std::string name;
  const ElementType* type;
  Dims shape;
  uint64_t begin, end;  // within the data section
};

// One file's header, checked.
class Header {
 public:
  explicit Header(const MappedFile& file) : source_(file.path().string()) {
    auto bytes = file.bytes();
    uint64_t length = header_length(bytes);
    data_start = 8 + length;
    data_size_ = bytes.size() - data_start;
    std::string_view text(reinterpret_cast<const char*>(bytes.data()) + 8, length);
    check<FormatError>(text.starts_with('{'), "{}: header: must start with '{{'", source_);
    Json json = Json::parse(text, source_);
    for (const auto& [name, value] : json.members()) {
      if (name == "__metadata__")
        read_metadata(value);
      else
        entries.push_back(read_entry(name, value));
    }
    check_offsets();
  }

  std::vector<Entry> entries;  // by offset
  std::map<std::string, std::string> metadata;
  uint64_t data_start;

 private:
  uint64_t header_length(std::span<const std::byte> bytes) const {
    check<FormatError>(bytes.size() >= 8, "{}: expected at least the 8 bytes of the header's length, got {} bytes",
                       source_, bytes.size());
    uint64_t length;
    std::memcpy(&length, bytes.data(), 8);
    check<FormatError>(length <= kMaxHeader && length <= bytes.size() - 8,
                       "{}: header length at offset 0: must be at most {} and lie within the file, got {} in a file of "
                       "{} bytes",
                       source_, kMaxHeader, length, bytes.size());
    return length;
  }

  void read_metadata(const Json& value) {
    check<FormatError>(value.is_object(), "{}: __metadata__: expected object, got {}", source_, value.kind_name());
    for (const auto& [key, text] : value.members()) {
      check<FormatError>(text.is_string(), "{}: __metadata__ '{}': expected string, got {}", source_, shown(key),
                         text.kind_name());
      metadata.emplace(key, text.as_string());
    }
  }

  Entry read_entry(const std::string& name, const Json& value) const {
    check<FormatError>(value.is_object(), "{}: tensor '{}': expected object, got {}", source_, shown(name),
                       value.kind_name());
    Entry entry{name, element_type(name, field(name, value, "dtype")), shape(name, field(name, value, "shape")), 0, 0};
    const Json& offsets = field(name, value, "data_offsets");
    check<FormatError>(offsets.is_array() && offsets.size() == 2,
                       "{}: tensor '{}': data_offsets: expected [begin, end], got {}", source_, shown(name),
                       shown(offsets.dump()));
    entry.begin = natural(name, "data_offsets", offsets.items()[0]);
    entry.end = natural(name, "data_offsets", offsets.items()[1]);
    check<FormatError>(entry.begin <= entry.end && entry.end <= data_size_,
                       "{}: tensor '{}': data_offsets: must rise and stay within {} bytes of data, got [{}, {}]",
                       source_, shown(name), data_size_, entry.begin, entry.end);
    check_size(entry);
    return entry;
  }

  const Json& field(const std::string& name, const Json& value, const char* key) const {
    const Json* found = value.find(key);
    check<FormatError>(found != nullptr, "{}: tensor '{}': field '{}' is missing", source_, shown(name), key);
    return *found;
  }

  const ElementType* element_type(const std::string& name, const Json& value) const {
    if (value.is_string())
      for (const ElementType& type : kElementTypes)
        if (type.name == value.as_string()) return &type;
    fail<FormatError>("{}: tensor '{}': dtype: unknown type {}", source_, shown(name), shown(value.dump()));
  }

  Dims shape(const std::string& name, const Json& value) const {
    check<FormatError>(value.is_array(), "{}: tensor '{}': shape: expected array, got {}", source_, shown(name),
                       value.kind_name());
    check<FormatError>(value.size() <= kMaxRank, "{}: tensor '{}': shape: at most {} dimensions, got {}", source_,
                       shown(name), kMaxRank, value.size());
    Dims dims;
    for (const Json& size : value.items()) {
      uint64_t n = natural(name, "shape", size);
      check<FormatError>(n <= uint64_t{INT64_MAX}, "{}: tensor '{}': shape: size {} is out of range", source_,
                         shown(name), n);
      dims.push_back(static_cast<int64_t>(n));
    }
    return dims;
  }

  uint64_t natural(const std::string& name, const char* key, const Json& value) const {
    bool ok = value.kind() == Json::Kind::unsigned_integer || (value.is_integer() && value.as_int() >= 0);
    check<FormatError>(ok, "{}: tensor '{}': {}: expected a 64-bit non-negative integer, got {}", source_, shown(name),
                       key, shown(value.dump()));
    return value.as_uint();
  }

  // The bytes must be exactly what dtype and shape need. Strides are products too, so even with a zero among the sizes
  // the product of the others must not overflow.
  void check_size(const Entry& entry) const {
    uint64_t bits = entry.type->bits;
    bool empty = false, fits = true;
    for (int64_t size : entry.shape) {
      empty = empty || size == 0;
      fits = fits && !__builtin_mul_overflow(bits, static_cast<uint64_t>(std::max<int64_t>(size, 1)), &bits) &&
             bits <= uint64_t{INT64_MAX};
    }
    check<FormatError>(fits, "{}: tensor '{}': shape: too many elements, got {}", source_, shown(entry.name),
                       entry.shape);
    if (empty) bits = 0;
    check<FormatError>(bits % 8 == 0, "{}: tensor '{}': shape: {} elements of {} bits do not fill whole bytes", source_,
                       shown(entry.name), bits / entry.type->bits, entry.type->bits);
    check<FormatError>(entry.end - entry.begin == bits / 8,
                       "{}: tensor '{}': data_offsets: {} {} need {} bytes, got [{}, {}]", source_, shown(entry.name),
                       entry.type->name, entry.shape, bits / 8, entry.begin, entry.end);
  }

  // In order of offset, tensors follow each other from 0 to the end of the file without a gap or an overlap.
  void check_offsets() {
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
    uint64_t at = 0;
    for (const Entry& entry : entries) {
      check<FormatError>(entry.begin == at, "{}: tensor '{}': data_offsets: {}, expected begin {}, got [{}, {}]",
                         source_, shown(entry.name), entry.begin < at ? "overlaps the tensor before" : "leaves a hole",
                         at, entry.begin, entry.end);
      at = entry.end;
    }
    check<FormatError>(at == data_size_, "{}: {} bytes of data after the last tensor{}", source_, data_size_ - at,
                       entries.empty() ? "" : " '" + shown(entries.back().name) + "'");
  }

  std::string source_;
  uint64_t data_size_;
};

// Names in an index come from a stranger: a plain file name of this folder, nothing else.
bool is_plain_shard_name(std::string_view name) {
  if (name.find_first_of(std::string_view("/\\:\0", 4)) != std::string_view::npos) return false;
  return name.size() > 12 && name.size() <= 255 && name.ends_with(".safetensors") && name[0] != '.';
}

}  // namespace

struct SafetensorsFile::State {
  struct Place {
    std::shared_ptr<const MappedFile> file;
    uint64_t offset;
    size_t info;  // in tensors, or in unsupported
    bool readable;
  };
  fs::path path;
  std::vector<TensorInfo> tensors;
  std::vector<UnsupportedTensor> unsupported;
  std::map<std::string, Place, std::less<>> places;
  std::map<std::string, std::string> metadata;

  void add_file(const fs::path& file_path) {
    auto file = MappedFile::open(file_path);
    Header header(*file);
    for (auto& [key, value] : header.metadata) metadata.emplace(key, value);
    for (Entry& entry : header.entries) {
      auto [it, fresh] = places.try_emplace(entry.name, Place{file, header.data_start + entry.begin, 0, true});
      check<FormatError>(fresh, "{}: tensor '{}' is also in {}", file_path.string(), shown(entry.name),
                         fresh ? "" : it->second.file->path().string());
      it->second.readable = entry.type->dtype.has_value();
      if (it->second.readable) {
        it->second.info = tensors.size();
        tensors.push_back({std::move(entry.name), *entry.type->dtype, entry.shape,
                           static_cast<int64_t>(entry.end - entry.begin), file_path});
      } else {
        it->second.info = unsupported.size();
        unsupported.push_back({std::move(entry.name), std::string(entry.type->name), file_path});
      }
    }
  }

  void add_shards(const fs::path& index) {
    Json json = Json::parse_file(index);
    std::map<std::string, std::string> weight_map = read_weight_map(index, json);
    std::set<std::string> shards;
    for (auto& [name, shard] : weight_map) shards.insert(shard);
    for (const std::string& shard : shards) add_file(index.parent_path() / shard);
    for (auto& [name, shard] : weight_map) {
      auto it = places.find(name);
      check<FormatError>(it != places.end() && it->second.file->path().filename() == shard,
                         "{}: weight_map '{}': names {}, which does not hold it", index.string(), shown(name), shard);
    }
    for (auto& [name, place] : places)
      check<FormatError>(weight_map.contains(name), "{}: tensor '{}' is missing in {}", place.file->path().string(),
                         shown(name), index.filename().string());
  }

  // Every name is checked before any file is opened.
  static std::map<std::string, std::string> read_weight_map(const fs::path& index, const Json& json) {
    const Json& map = json.at("weight_map");
    check<FormatError>(map.is_object(), "{}: weight_map: expected object, got {}", index.string(), map.kind_name());
    std::map<std::string, std::string> result;
    std::set<std::string_view> shards;
    for (const auto& [name, value] : map.members()) {
      check<FormatError>(value.is_string() && is_plain_shard_name(value.as_string()),
                         "{}: weight_map '{}': must name a .safetensors file in the same folder, got {}",
                         index.string(), shown(name), shown(value.dump()));
      shards.insert(value.as_string());
      check<FormatError>(shards.size() <= kMaxShards, "{}: weight_map '{}': more than {} shards", index.string(),
                         shown(name), kMaxShards);
      result.emplace(name, value.as_string());
    }
    return result;
  }

  // A folder with both forms is ambiguous unless they name the same tensors; then the single file is read.
  void add_folder(const fs::path& folder) {
    fs::path single = folder / "model.safetensors", index = folder / kIndexName;
    bool has_index = fs::exists(index);
    if (!fs::exists(single)) {
      check(has_index, "{}: holds neither model.safetensors nor {}", folder.string(), kIndexName);
      return add_shards(index);
    }
    add_file(single);
    if (!has_index) return;
    auto weight_map = read_weight_map(index, Json::parse_file(index));
    for (auto& [name, shard] : weight_map)
      check<FormatError>(places.contains(name), "{}: model.safetensors lacks '{}' of {}; remove the one that is stale",
                         folder.string(), shown(name), kIndexName);
    check<FormatError>(weight_map.size() == places.size(),
                       "{}: model.safetensors holds {} tensors, {} names {}; remove the one that is stale",
                       folder.string(), places.size(), kIndexName, weight_map.size());
  }

  void sort() {
    std::sort(tensors.begin(), tensors.end(), [](auto& a, auto& b) { return a.name < b.name; });
    std::sort(unsupported.begin(), unsupported.end(), [](auto& a, auto& b) { return a.name < b.name; });
    for (size_t i = 0; i < tensors.size(); ++i) places.at(tensors[i].name).info = i;
    for (size_t i = 0; i < unsupported.size(); ++i) places.at(unsupported[i].name).info = i;
  }
};

SafetensorsFile SafetensorsFile::open(const fs::path& path) {
  auto state = std::make_shared<State>();
  state->path = path;
  if (fs::is_directory(path))
    state->add_folder(path);
  else if (path.extension() == ".json")
    state->add_shards(path);
  else
    state->add_file(path);
  state->sort();
  return SafetensorsFile(std::move(state));
}

const std::vector<TensorInfo>& SafetensorsFile::tensors() const {
  return state_->tensors;
}
const std::vector<UnsupportedTensor>& SafetensorsFile::unsupported() const {
  return state_->unsupported;
}
bool SafetensorsFile::contains(const std::string& name) const {
  return state_->places.contains(name);
}
const std::map<std::string, std::string>& SafetensorsFile::metadata() const {
  return state_->metadata;
}

Tensor SafetensorsFile::tensor(const std::string& name) const {
  auto it = state_->places.find(name);
  check(it != state_->places.end(), "{}: has no tensor '{}'", state_->path.string(), shown(name));
  const State::Place& place = it->second;
  check<FormatError>(place.readable, "{}: tensor '{}': dtype {} cannot be read", place.file->path().string(),
                     shown(name), place.readable ? "" : state_->unsupported[place.info].dtype);
  const TensorInfo& info = state_->tensors[place.info];
  const std::byte* data = place.file->bytes().data() + place.offset;
  if (info.dtype == DType::boolean)
    for (int64_t i = 0; i < info.bytes; ++i)
      check<FormatError>(data[i] <= std::byte{1}, "{}: tensor '{}': element {}: a BOOL must be 0 or 1, got {}",
                         info.file.string(), shown(name), i, static_cast<int>(data[i]));
  if (place.offset % static_cast<uint64_t>(dtype_size(info.dtype)) != 0) {
    Tensor copy = empty(info.shape, {info.dtype, Device::cpu()});
    std::memcpy(copy.mutable_raw_data(), data, static_cast<size_t>(info.bytes));
    return copy;
  }
  return Tensor(Storage::borrow(data, info.bytes, place.file), Layout::contiguous(info.shape), info.dtype);
}

}  // namespace strata
