#include "tensor/io/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>

#include "tensor/create.h"
#include "tensor/io/gguf_writer.h"
#include "tests/temporary_folder.h"

namespace strata {
namespace {

using gguf::ValueType;
using test::error_of;
using test::read_file;
using test::TemporaryFolder;
using testing::ElementsAre;
using testing::HasSubstr;

const std::filesystem::path kGolden = std::filesystem::path(STRATA_SOURCE_DIR) / "tests/golden/gguf_small.gguf";

// ---- the file that the Python package gguf wrote ----

TEST(Gguf, ReadsEveryValueType) {
  auto file = GgufFile::open(kGolden);
  const Json& m = file.metadata();
  EXPECT_EQ(m.members().front().first, "general.architecture");
  EXPECT_EQ(m.get<std::string>("general.architecture"), "llama");
  EXPECT_EQ(m.get<int64_t>("v.u8"), 255);
  EXPECT_EQ(m.get<int64_t>("v.i8"), -128);
  EXPECT_EQ(m.get<int64_t>("v.u16"), 65535);
  EXPECT_EQ(m.get<int64_t>("v.i16"), -32768);
  EXPECT_EQ(m.get<int64_t>("v.u32"), 4294967295);
  EXPECT_EQ(m.get<int64_t>("v.i32"), -2147483648);
  EXPECT_EQ(m.get<double>("v.f32"), static_cast<double>(1e-5f));
  EXPECT_EQ(m.get<bool>("v.true"), true);
  EXPECT_EQ(m.get<std::string>("v.string"), "a\n\"é😀");
  EXPECT_EQ(m.get<uint64_t>("v.u64"), 18446744073709551615u);
  EXPECT_EQ(m.get<int64_t>("v.i64"), INT64_MIN);
  EXPECT_EQ(m.get<double>("v.f64"), 0.1);
  EXPECT_EQ(m.at("v.strings").dump(), R"(["<s>", "", "Ġhello"])");
  EXPECT_EQ(m.at("v.ints").dump(), "[1, -2, 3]");
  EXPECT_EQ(m.at("v.floats").dump(), "[0.5, -1000.0]");
  EXPECT_EQ(m.at("v.bools").dump(), "[true, false]");
  EXPECT_THAT(error_of<FormatError>([&] { m.get<int64_t>("v.none"); }), HasSubstr("gguf_small.gguf: field 'v.none'"));
}

TEST(Gguf, ReadsEveryTensorType) {
  auto file = GgufFile::open(kGolden);
  auto plain = [&](const std::string& name) { return std::get<Tensor>(file.tensor(name)); };
  EXPECT_EQ(plain("f32").shape(), (Dims{2, 3}));
  EXPECT_THAT(to_vector<float>(plain("f32")), ElementsAre(0, 0.25, 0.5, 0.75, 1, 1.25));
  EXPECT_THAT(to_vector<float>(plain("f16")), ElementsAre(-2, -1, 0, 1, 2, 3));
  EXPECT_THAT(to_vector<float>(plain("bf16")), ElementsAre(1, -2));
  EXPECT_THAT(to_vector<int64_t>(plain("i8")), ElementsAre(-1, 2, -3));
  EXPECT_THAT(to_vector<int64_t>(plain("i32")), ElementsAre(7, -8));
  EXPECT_THAT(to_vector<int64_t>(plain("i64")), ElementsAre(int64_t{1} << 40));
  EXPECT_THAT(to_vector<double>(plain("f64")), ElementsAre(0.1));
  EXPECT_EQ(plain("f32").storage()->kind(), MemoryKind::mapped);
  EXPECT_EQ(file.find("f16")->type, "F16");
  EXPECT_EQ(file.find("none"), nullptr);
  EXPECT_EQ(error_of<Error>([&] { file.tensor("none"); }), kGolden.string() + ": has no tensor 'none'");

  auto w = std::get<QuantizedWeight>(file.tensor("q8_0"));  // [2, 3, 64] counts as 6 rows
  EXPECT_EQ(w.type, QuantType::q8_0);
  EXPECT_EQ(w.rows, 6);
  EXPECT_EQ(w.columns, 64);
  EXPECT_EQ(w.bytes.shape(), (Dims{6, 68}));
  for (std::string name : {"q8_0", "q4_1"}) {
    Tensor values = file.tensor_f32(name);
    EXPECT_EQ(values.shape(), (Dims{2, 3, 64}));
    auto x = to_vector<double>(values);
    for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], -1 + 2.0 * static_cast<double>(i) / 383, 0.01) << name;
  }
  EXPECT_THAT(to_vector<float>(file.tensor_f32("i8")), ElementsAre(-1, 2, -3));
}

// What we write from what we read is the Python package's file, byte for byte.
TEST(Gguf, WritesTheSameBytesAsThePythonPackage) {
  TemporaryFolder folder;
  auto file = GgufFile::open(kGolden);
  std::vector<GgufTensor> tensors;
  for (const GgufTensorInfo& info : file.tensors()) tensors.push_back({info.name, file.tensor(info.name), info.shape});
  write_gguf(folder / "copy.gguf", file.entries(), tensors);
  EXPECT_EQ(read_file(folder / "copy.gguf"), read_file(kGolden));
}

// ---- hostile files ----

struct Bytes {
  std::string text;
  template <class T>
  Bytes& put(T value) {
    text.append(reinterpret_cast<const char*>(&value), sizeof(T));
    return *this;
  }
  Bytes& u32(uint32_t value) { return put(value); }
  Bytes& u64(uint64_t value) { return put(value); }
  Bytes& string(const std::string& value) {
    u64(value.size());
    text += value;
    return *this;
  }
  Bytes& pair(const std::string& key, ValueType type) { return string(key).u32(static_cast<uint32_t>(type)); }
  Bytes& tensor(const std::string& name, const std::vector<uint64_t>& shape, uint32_t type, uint64_t offset) {
    string(name).u32(static_cast<uint32_t>(shape.size()));
    for (uint64_t size : shape) u64(size);
    return u32(type).u64(offset);
  }
  Bytes& align(size_t to = 32) {
    text.resize((text.size() + to - 1) / to * to);
    return *this;
  }
  Bytes& data(size_t bytes) {
    align();
    text.append(bytes, '\1');
    return *this;
  }
};

Bytes file_with(uint64_t tensors, uint64_t pairs, uint32_t version = 3) {
  return Bytes{}.u32(gguf::kMagic).u32(version).u64(tensors).u64(pairs);
}

std::string failure(const Bytes& bytes) {
  TemporaryFolder folder;
  auto path = folder.write("x.gguf", bytes.text);
  auto start = std::chrono::steady_clock::now();
  std::string error = error_of<FormatError>([&] { GgufFile::open(path); });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(100));
  EXPECT_THAT(error, testing::StartsWith(path.string() + ": "));
  EXPECT_THAT(error, HasSubstr("at offset "));
  return error;
}

TEST(GgufHostile, Preamble) {
  EXPECT_THAT(failure(Bytes{}), HasSubstr("magic: at offset 0: expected 4 bytes, the file ends after 0"));
  EXPECT_THAT(failure(Bytes{"GGML"}), HasSubstr("not a GGUF file"));
  EXPECT_THAT(failure(file_with(0, 0, 1)), HasSubstr("version: at offset 8: expected 2 or 3, got 1"));
  EXPECT_THAT(failure(file_with(0, 0, 0x03000000)), HasSubstr("a big-endian file"));
  for (uint64_t n : {uint64_t{2}, uint64_t{1} << 32, uint64_t{1} << 63, UINT64_MAX}) {
    EXPECT_THAT(failure(file_with(n, 0)),
                HasSubstr(fmt::format("tensor count: at offset 16: {} tensors do not fit", n)));
    EXPECT_THAT(failure(file_with(0, n)),
                HasSubstr(fmt::format("metadata count: at offset 24: {} values do not fit", n)));
  }
}

TEST(GgufHostile, Strings) {
  for (uint64_t length : {uint64_t{30}, uint64_t{1} << 63, UINT64_MAX})
    EXPECT_THAT(failure(file_with(0, 1).u64(length).align()),
                HasSubstr(fmt::format("metadata key: at offset 32: string of {} bytes", length)));
  EXPECT_THAT(failure(file_with(0, 1).pair("k", ValueType::string).u64(uint64_t{1} << 63)),
              HasSubstr("metadata 'k': at offset 45: string of 9223372036854775808 bytes"));
}

TEST(GgufHostile, Values) {
  EXPECT_THAT(failure(file_with(0, 1).string("k").u32(13)),
              HasSubstr("metadata 'k': at offset 37: unknown value type 13"));
  EXPECT_THAT(failure(file_with(0, 1).pair("k", ValueType::boolean).put(uint8_t{2})),
              HasSubstr("must be 0 or 1, got 2"));
  Bytes twice = file_with(0, 2);
  for (int i = 0; i < 2; ++i) twice.pair("k", ValueType::u8).put(uint8_t{1});
  EXPECT_THAT(failure(twice), HasSubstr("metadata 'k': at offset 47: the key stands twice"));
}

TEST(GgufHostile, Arrays) {
  Bytes deep = file_with(0, 1).pair("k", ValueType::array);
  for (int i = 0; i < 1000; ++i) deep.u32(static_cast<uint32_t>(ValueType::array)).u64(1);
  EXPECT_THAT(failure(deep), HasSubstr("metadata 'k': at offset 85: arrays nested deeper than 4"));
  for (uint64_t count : {uint64_t{100}, uint64_t{1} << 40, UINT64_MAX})
    EXPECT_THAT(failure(file_with(0, 1).pair("k", ValueType::array).u32(0).u64(count).align()),
                HasSubstr(fmt::format("array of {} values", count)));
  EXPECT_THAT(failure(file_with(0, 1).pair("k", ValueType::array).u32(99).u64(1).align()),
              HasSubstr("unknown value type 99"));
  EXPECT_THAT(failure(file_with(0, 1).pair("k", ValueType::array)), HasSubstr("expected 4 bytes"));
  // Short empty strings in a large array: each item costs more memory than its 8 bytes in the file.
  Bytes many = file_with(0, 1).pair("k", ValueType::array).u32(static_cast<uint32_t>(ValueType::u8)).u64((1 << 23) + 1);
  many.text.append((1 << 23) + 1, '\0');
  EXPECT_THAT(failure(many), HasSubstr("more than 8388608 array values"));
}

TEST(GgufHostile, Alignment) {
  auto aligned = [](uint32_t value) { return file_with(0, 1).pair("general.alignment", ValueType::u32).u32(value); };
  for (uint32_t value : {0u, 1u, 3u, 4u, 33u, 1u << 31, UINT32_MAX})
    EXPECT_THAT(failure(aligned(value)),
                HasSubstr(fmt::format("must be a power of two from 8 to 16777216, got {}", value)));
  EXPECT_THAT(failure(file_with(0, 1).pair("general.alignment", ValueType::u64).u64(uint64_t{1} << 63)),
              HasSubstr("general.alignment: at offset"));
  EXPECT_THAT(failure(file_with(0, 1).pair("general.alignment", ValueType::string).string("32")),
              HasSubstr("expected an integer, got string"));
  EXPECT_THAT(failure(file_with(0, 1).pair("general.alignment", ValueType::i32).put(int32_t{-32})),
              HasSubstr("got -32"));
}

TEST(GgufHostile, Tensors) {
  EXPECT_THAT(failure(file_with(1, 0).tensor("w", {4}, 255, 0).data(16)),
              HasSubstr("tensor 'w': at offset 49: unknown element type 255"));
  EXPECT_THAT(failure(file_with(1, 0).tensor("w", {4}, 4, 0).data(16)),
              HasSubstr("unknown element type 4"));  // removed
  EXPECT_THAT(failure(file_with(1, 0).tensor("w", {1, 1, 1, 1, 4}, 0, 0).data(16)),
              HasSubstr("at most 4 dimensions, got 5"));
  EXPECT_THAT(failure(file_with(1, 0).string("w").u32(UINT32_MAX).data(64)), HasSubstr("at most 4 dimensions"));
  EXPECT_THAT(failure(file_with(1, 0).tensor("w", {100, 2}, 12, 0).data(144)),
              HasSubstr("rows of Q4_K must hold a multiple of 256 values, got shape [2, 100]"));
  EXPECT_THAT(failure(file_with(1, 0).tensor("w", {}, 8, 0).data(34)),
              HasSubstr("rows of Q8_0 must hold a multiple of 32"));
  Bytes twice = file_with(2, 0).tensor("w", {1}, 0, 0).tensor("w", {1}, 0, 32).data(64);
  EXPECT_THAT(failure(twice), HasSubstr("tensor 'w': at offset 66: the name stands twice"));
}

TEST(GgufHostile, SizesThatOverflow) {
  for (std::vector<uint64_t> shape : {std::vector<uint64_t>{uint64_t{1} << 32, uint64_t{1} << 32},
                                      {uint64_t{1} << 62, 4},
                                      {INT64_MAX},
                                      {uint64_t{1} << 40, uint64_t{1} << 40, 0}})
    EXPECT_THAT(failure(file_with(1, 0).tensor("w", shape, 0, 0).data(16)), HasSubstr("too many elements"));
  EXPECT_THAT(failure(file_with(1, 0).tensor("w", {uint64_t{1} << 63}, 0, 0).data(16)), HasSubstr("is out of range"));
  EXPECT_THAT(failure(file_with(1, 0).tensor("w", {uint64_t{1} << 62, 2}, 8, 0).data(34)),
              HasSubstr("too many elements"));
}

TEST(GgufHostile, Offsets) {
  EXPECT_THAT(failure(file_with(1, 0).tensor("w", {4}, 0, 8).data(64)),
              HasSubstr("tensor 'w': at offset 57: data offset 8 is not a multiple of the alignment 32"));
  for (uint64_t offset : {uint64_t{64}, uint64_t{1} << 62, UINT64_MAX - 31})
    EXPECT_THAT(
        failure(file_with(1, 0).tensor("w", {4}, 0, offset).data(64)),
        HasSubstr(fmt::format("tensor 'w': at offset 57: 16 bytes at data offset {} leave the 64 bytes", offset)));
  EXPECT_THAT(failure(file_with(1, 0).tensor("w", {4}, 0, 0).align()), HasSubstr("leave the 0 bytes of data"));
  Bytes overlap = file_with(2, 0).tensor("a", {9}, 0, 0).tensor("b", {4}, 0, 32).data(64);
  EXPECT_THAT(failure(overlap), HasSubstr("tensor 'b': at offset 90: its data overlaps that of 'a'"));
}

TEST(GgufHostile, EveryPrefixOfAFileIsRefused) {
  std::string whole = read_file(kGolden);
  size_t last_needed = 0;  // padding after the last tensor's data may be missing
  TemporaryFolder folder;
  for (size_t n = 0; n <= whole.size(); ++n) {
    auto path = folder.write("x.gguf", whole.substr(0, n));
    std::string error = error_of<FormatError>([&] { GgufFile::open(path); });
    if (error.empty() && last_needed == 0) last_needed = n;
    EXPECT_EQ(error.empty(), last_needed != 0) << n << " bytes";
  }
  EXPECT_GT(last_needed + 64, whole.size());
}

// Every byte of the header changed in turn: an error or a file, never a crash; what opens can be read.
TEST(GgufHostile, FlippedBytes) {
  std::string whole = read_file(kGolden);
  TemporaryFolder folder;
  for (size_t at = 0; at < whole.size() - 700; ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ (at % 3 == 0 ? 0x01 : at % 3 == 1 ? 0x80 : 0xff));
    auto path = folder.write("x.gguf", changed);
    try {
      auto file = GgufFile::open(path);
      for (const GgufTensorInfo& info : file.tensors()) file.tensor(info.name);
    } catch (const FormatError& e) {
      EXPECT_THAT(e.what(), testing::StartsWith(path.string()));
    }
  }
}

TEST(Gguf, TypesThatCannotBeReadAreListed) {
  TemporaryFolder folder;
  auto path = folder.write("x.gguf", file_with(1, 0).tensor("w", {256, 2}, 10, 0).data(168).text);
  auto file = GgufFile::open(path);
  EXPECT_EQ(file.tensors()[0].type, "Q2_K");
  EXPECT_EQ(file.tensors()[0].shape, (Dims{2, 256}));
  EXPECT_EQ(file.tensors()[0].bytes, 168);
  EXPECT_EQ(error_of<FormatError>([&] { file.tensor("w"); }),
            path.string() + ": tensor 'w': element type Q2_K cannot be read");
}

TEST(Gguf, LegalCorners) {
  TemporaryFolder folder;
  Bytes v2 = file_with(3, 0, 2).tensor("scalar", {}, 0, 0).tensor("none", {3, 0}, 0, 32).tensor("rows", {32, 0}, 8, 32);
  auto file = GgufFile::open(folder.write("x.gguf", v2.data(32).text));
  EXPECT_EQ(std::get<Tensor>(file.tensor("scalar")).shape(), Dims{});
  EXPECT_EQ(std::get<Tensor>(file.tensor("none")).shape(), (Dims{0, 3}));
  EXPECT_EQ(std::get<QuantizedWeight>(file.tensor("rows")).rows, 0);
  EXPECT_EQ(file.tensor_f32("rows").shape(), (Dims{0, 32}));
  EXPECT_TRUE(GgufFile::open(folder.write("y.gguf", file_with(0, 0).text)).tensors().empty());
}

// ---- split models ----

void write_part(const TemporaryFolder& folder, const std::string& name, int64_t number, int64_t count, int64_t tensors,
                const std::string& tensor) {
  write_gguf(folder / name,
             {gguf::value("split.no", ValueType::u16, number), gguf::value("split.count", ValueType::u16, count),
              gguf::value("split.tensors.count", ValueType::i32, tensors)},
             {{tensor, full({2}, static_cast<double>(number))}});
}

TEST(Gguf, SplitFilesOpenAsOne) {
  TemporaryFolder folder;
  write_part(folder, "m-00001-of-00002.gguf", 0, 2, 2, "a");
  write_part(folder, "m-00002-of-00002.gguf", 1, 2, 2, "b");
  auto file = GgufFile::open(folder / "m-00001-of-00002.gguf");
  EXPECT_EQ(file.tensors().size(), 2u);
  EXPECT_THAT(to_vector<float>(file.tensor_f32("b")), ElementsAre(1, 1));
}

TEST(GgufHostile, SplitFilesWithWrongCounts) {
  TemporaryFolder folder;
  auto fails = [&](const std::string& name) { return error_of<Error>([&] { GgufFile::open(folder / name); }); };
  write_part(folder, "m-00001-of-00002.gguf", 0, 2, 2, "a");
  EXPECT_THAT(fails("m-00001-of-00002.gguf"), HasSubstr("m-00002-of-00002.gguf: cannot open file"));
  write_part(folder, "m-00002-of-00002.gguf", 1, 2, 2, "a");
  EXPECT_THAT(fails("m-00001-of-00002.gguf"), HasSubstr("tensor 'a' is also in"));
  EXPECT_THAT(fails("m-00002-of-00002.gguf"), HasSubstr("open the first file of a split model, this is number 1"));
  write_part(folder, "m-00002-of-00002.gguf", 0, 2, 2, "b");
  EXPECT_THAT(fails("m-00001-of-00002.gguf"), HasSubstr("expected 1 of 2, got 0 of 2"));
  write_part(folder, "m-00002-of-00002.gguf", 1, 2, 2, "b");
  write_part(folder, "m-00001-of-00002.gguf", 0, 2, 3, "a");
  EXPECT_THAT(fails("m-00001-of-00002.gguf"), HasSubstr("'split.tensors.count': 3, but the files hold 2 tensors"));
  write_part(folder, "m-00001-of-00002.gguf", 0, 3, 2, "a");
  EXPECT_THAT(fails("m-00001-of-00002.gguf"), HasSubstr("3 files, so the name must end in -00001-of-00003.gguf"));
  write_part(folder, "m-00001-of-60000.gguf", 0, 60000, 2, "a");
  EXPECT_THAT(fails("m-00001-of-60000.gguf"), HasSubstr("at most 1000 files, got 60000"));
}

// ---- writing ----

TEST(GgufWriter, StridedAndPackedTensors) {
  TemporaryFolder folder;
  Tensor t = from_values<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  write_gguf(
      folder / "x.gguf", {gguf::array("tokens", ValueType::string, {"a", "\xff"})},
      {{"t", alias(t, t.layout().transpose(0, 1))}, {"q", quantize(ones({4, 64}), QuantType::q4_0), {2, 2, 64}}});
  auto file = GgufFile::open(folder / "x.gguf");
  EXPECT_EQ(file.find("t")->shape, (Dims{3, 2}));
  EXPECT_THAT(to_vector<float>(file.tensor_f32("t")), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_EQ(file.tensor_f32("q").shape(), (Dims{2, 2, 64}));
  EXPECT_EQ(to_vector<float>(file.tensor_f32("q")), std::vector<float>(256, 1));
  EXPECT_EQ(file.metadata().at("tokens").items()[1].as_string(), "\xff");  // kept though it is not UTF-8
}

TEST(GgufWriter, RefusesWhatItCannotWrite) {
  TemporaryFolder folder;
  auto path = folder / "x.gguf";
  auto fails = [&](const std::vector<gguf::Entry>& metadata, const std::vector<GgufTensor>& tensors = {}) {
    std::string error = error_of<Error>([&] { write_gguf(path, metadata, tensors); });
    EXPECT_THAT(error, HasSubstr("write_gguf: " + path.string()));
    return error;
  };
  EXPECT_THAT(fails({gguf::value("k", ValueType::u8, 256)}), HasSubstr("metadata 'k': expected u8, got 256"));
  EXPECT_THAT(fails({gguf::value("k", ValueType::i16, -32769)}), HasSubstr("expected i16, got -32769"));
  EXPECT_THAT(fails({gguf::value("k", ValueType::u64, -1)}), HasSubstr("expected u64, got -1"));
  EXPECT_THAT(fails({gguf::value("k", ValueType::u32, 1.0)}), HasSubstr("expected u32, got 1.0"));
  EXPECT_THAT(fails({gguf::value("k", ValueType::string, 1)}), HasSubstr("expected string, got 1"));
  EXPECT_THAT(fails({gguf::value("k", ValueType::boolean, 1)}), HasSubstr("expected bool, got 1"));
  EXPECT_THAT(fails({gguf::array("k", ValueType::array, {})}), HasSubstr("arrays of arrays"));
  EXPECT_THAT(fails({gguf::value("k", ValueType::u8, 1), gguf::value("k", ValueType::u8, 1)}),
              HasSubstr("stands twice"));
  EXPECT_THAT(fails({gguf::value("general.alignment", ValueType::u32, 3)}), HasSubstr("power of two"));
  EXPECT_THAT(fails({}, {{"t", zeros({1}, {DType::u8, Device::cpu()})}}),
              HasSubstr("tensor 't': GGUF has no type for u8"));
  EXPECT_THAT(fails({}, {{"t", Tensor()}}), HasSubstr("tensor 't' is undefined"));
  EXPECT_THAT(fails({}, {{std::string(64, 'n'), zeros({1})}}), HasSubstr("name must have 1 to 63 bytes"));
  EXPECT_THAT(fails({}, {{"t", zeros({1})}, {"t", zeros({1})}}), HasSubstr("two tensors are called 't'"));
  EXPECT_THAT(fails({}, {{"t", zeros({1, 1, 1, 1, 1})}}), HasSubstr("tensor 't': cannot have shape [1, 1, 1, 1, 1]"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace strata
