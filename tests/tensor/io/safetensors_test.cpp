#include "tensor/io/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <numeric>

#include "tensor/create.h"
#include "tensor/io/json.h"
#include "tests/temporary_folder.h"

namespace strata {
namespace {

using test::error_of;
using test::read_file;
using test::TemporaryFolder;
using testing::ElementsAre;
using testing::HasSubstr;

const std::filesystem::path kStories = std::filesystem::path(STRATA_TEST_DATA) / "stories260K";

double sum_of(const Tensor& t) {
  auto values = to_vector<double>(t);
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// Figures of the Python package safetensors 0.8.0 on the same files.
TEST(Safetensors, ReadsARealModel) {
  auto file = SafetensorsFile::open(kStories / "model.safetensors");
  ASSERT_EQ(file.tensors().size(), 47u);
  EXPECT_EQ(file.tensors()[0].name, "model.embed_tokens.weight");
  EXPECT_EQ(file.tensors()[0].shape, (Dims{512, 64}));
  EXPECT_EQ(file.tensors()[0].bytes, 512 * 64 * 4);
  EXPECT_EQ(file.metadata().at("format"), "pt");
  Tensor norm = file.tensor("model.norm.weight");
  EXPECT_EQ(norm.data<float>()[0], 2.4583089351654053f);
  EXPECT_EQ(norm.data<float>()[63], 1.7077769041061401f);
  EXPECT_NEAR(sum_of(file.tensor("model.embed_tokens.weight")), -752.3677446640068, 1e-9);
  EXPECT_NEAR(sum_of(file.tensor("model.layers.4.mlp.down_proj.weight")), 19.543787761240765, 1e-9);
}

TEST(Safetensors, TensorsLiveOnTheMappedFileAndOutliveTheHandle) {
  Tensor norm;
  {
    auto file = SafetensorsFile::open(kStories / "model.safetensors");
    norm = file.tensor("model.norm.weight");
  }
  EXPECT_EQ(norm.storage()->kind(), MemoryKind::mapped);
  EXPECT_EQ(norm.data<float>()[0], 2.4583089351654053f);
  EXPECT_THAT(error_of<Error>([&] { norm.mutable_data<float>(); }), HasSubstr("read-only"));
}

TEST(Safetensors, ReadsShardsByFolderAndByIndex) {
  for (auto path : {kStories / "sharded_bf16", kStories / "sharded_bf16" / "model.safetensors.index.json"}) {
    auto file = SafetensorsFile::open(path);
    ASSERT_EQ(file.tensors().size(), 47u);
    Tensor t = file.tensor("model.layers.2.input_layernorm.weight");
    EXPECT_EQ(t.dtype(), DType::bf16);
    EXPECT_NEAR(sum_of(t), 77.9570, 1e-4);
    EXPECT_TRUE(file.contains("model.norm.weight"));
    EXPECT_EQ(file.tensors()[0].file.filename(), "model-00001-of-00002.safetensors");
  }
}

TEST(Safetensors, MissingThingsAreNamed) {
  auto path = kStories / "model.safetensors";
  auto file = SafetensorsFile::open(path);
  EXPECT_FALSE(file.contains("lm_head.weight"));
  EXPECT_EQ(error_of<Error>([&] { file.tensor("lm_head.weight"); }),
            path.string() + ": has no tensor 'lm_head.weight'");
  EXPECT_THAT(error_of<Error>([&] { SafetensorsFile::open("/nowhere/x.safetensors"); }),
              HasSubstr("/nowhere/x.safetensors: cannot open file: No such file"));
  TemporaryFolder folder;
  EXPECT_THAT(error_of<Error>([&] { SafetensorsFile::open(folder.path()); }), HasSubstr("holds neither"));
  mkfifo((folder / "pipe").c_str(), 0600);
  EXPECT_THAT(error_of<Error>([&] { SafetensorsFile::open(folder / "pipe"); }), HasSubstr("expected a regular file"));
}

// ---- hostile files ----

std::string with_length(uint64_t length, const std::string& rest) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + rest;
}

std::string file_bytes(const std::string& header, size_t data_bytes) {
  return with_length(header.size(), header + std::string(data_bytes, '\1'));
}

std::string failure(const std::string& bytes) {
  TemporaryFolder folder;
  auto path = folder.write("x.safetensors", bytes);
  auto start = std::chrono::steady_clock::now();
  std::string error = error_of<FormatError>([&] { SafetensorsFile::open(path); });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(100));
  EXPECT_THAT(error, testing::StartsWith(path.string()));
  return error;
}

std::string failure(const std::string& header, size_t data_bytes) {
  return failure(file_bytes(header, data_bytes));
}

std::string f32_entry(const std::string& offsets, const std::string& shape = "[1]") {
  return R"({"w": {"dtype": "F32", "shape": )" + shape + R"(, "data_offsets": )" + offsets + "}}";
}

TEST(SafetensorsHostile, HeaderLength) {
  EXPECT_THAT(failure(""), HasSubstr("got 0 bytes"));
  EXPECT_THAT(failure("1234567"), HasSubstr("got 7 bytes"));
  EXPECT_THAT(failure(with_length(0, "")), HasSubstr("must start with '{'"));
  for (uint64_t n : {uint64_t{1} << 63, UINT64_MAX, UINT64_MAX - 4, uint64_t{100'000'001}, uint64_t{3}})
    EXPECT_THAT(failure(with_length(n, "{}")), HasSubstr(fmt::format("got {} in a file of 10 bytes", n)));
}

TEST(SafetensorsHostile, HeaderLengthOfMoreThanTheLimitInALargeFile) {
  TemporaryFolder folder;
  auto path = folder.write("x.safetensors", with_length(100'000'001, "{"));
  std::filesystem::resize_file(path, 100'000'100);  // sparse
  EXPECT_THAT(error_of<FormatError>([&] { SafetensorsFile::open(path); }), HasSubstr("at most 100000000"));
}

TEST(SafetensorsHostile, Offsets) {
  for (std::string offsets : {"[0]", "[]", "[0, 4, 8]", "{}", "null", "4"})
    EXPECT_THAT(failure(f32_entry(offsets), 4), HasSubstr("tensor 'w': data_offsets: expected [begin, end]"))
        << offsets;
  for (std::string offsets : {"[-1, 4]", "[\"0\", 4]", "[0, 4.5]", "[0, 1e300]", "[0, 18446744073709551616]",
                              "[18446744073709551608, 18446744073709551616]", "[true, 4]", "[null, 4]"})
    EXPECT_THAT(failure(f32_entry(offsets), 4), HasSubstr("tensor 'w': data_offsets: expected a 64-bit non-negative"))
        << offsets;
  for (std::string offsets : {"[5, 3]", "[0, 8]", "[4, 8]", "[18446744073709551608, 18446744073709551612]"})
    EXPECT_THAT(failure(f32_entry(offsets), 4), HasSubstr("tensor 'w': data_offsets: must rise and stay within 4"))
        << offsets;
  EXPECT_THAT(failure(f32_entry("[1, 5]"), 5), HasSubstr("tensor 'w': data_offsets: leaves a hole, expected begin 0"));
  EXPECT_THAT(failure(f32_entry("[0, 4]"), 5), HasSubstr("1 bytes of data after the last tensor 'w'"));
  EXPECT_THAT(failure("{}", 1), HasSubstr("1 bytes of data after the last tensor"));
}

TEST(SafetensorsHostile, OffsetsAreExactIntegers) {  // 2^53 + 1 through a double would become 2^53
  EXPECT_THAT(failure(f32_entry("[0, 9007199254740993]"), 4), HasSubstr("got [0, 9007199254740993]"));
}

TEST(SafetensorsHostile, OverlapAndHole) {
  auto two = [](int begin, int end) {
    return fmt::format(R"({{"a": {{"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}}, )"
                       R"("b": {{"dtype": "U8", "shape": [{}], "data_offsets": [{}, {}]}}}})",
                       end - begin, begin, end);
  };
  EXPECT_THAT(failure(two(3, 8), 8),
              HasSubstr("tensor 'b': data_offsets: overlaps the tensor before, expected begin 4"));
  EXPECT_THAT(failure(two(5, 8), 8), HasSubstr("tensor 'b': data_offsets: leaves a hole, expected begin 4"));
}

TEST(SafetensorsHostile, ShapesAndSizes) {
  EXPECT_THAT(failure(f32_entry("[0, 8]", "[4294967296, 4294967296]"), 8), HasSubstr("tensor 'w': shape: too many"));
  EXPECT_THAT(failure(f32_entry("[0, 65536]", "[32, 8]"), 65536),
              HasSubstr("tensor 'w': data_offsets: F32 [32, 8] need 1024 bytes, got [0, 65536]"));
  EXPECT_THAT(failure(f32_entry("[0, 0]", "[9223372036854775808, 9223372036854775808, 0]"), 0),
              HasSubstr("out of range"));
  EXPECT_THAT(failure(f32_entry("[0, 0]", "[0, 4611686018427387904, 4611686018427387904]"), 0), HasSubstr("too many"));
  EXPECT_THAT(failure(f32_entry("[0, 4]", "[-1]"), 4), HasSubstr("tensor 'w': shape: expected a 64-bit non-negative"));
  EXPECT_THAT(failure(f32_entry("[0, 4]", "[1.0]"), 4), HasSubstr("tensor 'w': shape: expected a 64-bit non-negative"));
  EXPECT_THAT(failure(f32_entry("[0, 4]", "1"), 4), HasSubstr("tensor 'w': shape: expected array"));
  std::string many = "[1";
  for (int i = 1; i < 300; ++i) many += ", 1";
  EXPECT_THAT(failure(f32_entry("[0, 4]", many + "]"), 4),
              HasSubstr("tensor 'w': shape: at most 8 dimensions, got 300"));
  EXPECT_THAT(failure(R"({"w": {"dtype": "F4", "shape": [3], "data_offsets": [0, 2]}})", 2),
              HasSubstr("tensor 'w': shape: 3 elements of 4 bits do not fill whole bytes"));
}

TEST(SafetensorsHostile, HeaderContents) {
  EXPECT_THAT(failure("[]", 0), HasSubstr("must start with '{'"));
  EXPECT_THAT(failure("{\"w\": 1}", 0), HasSubstr("tensor 'w': expected object"));
  EXPECT_THAT(failure("{\"w\": {}}", 0), HasSubstr("tensor 'w': field 'dtype' is missing"));
  EXPECT_THAT(failure(R"({"w": {"dtype": "F33", "shape": [1], "data_offsets": [0, 4]}})", 4),
              HasSubstr("tensor 'w': dtype: unknown type \"F33\""));
  EXPECT_THAT(failure(R"({"__metadata__": {"a": 1}})", 0), HasSubstr("__metadata__ 'a': expected string"));
  EXPECT_THAT(failure("{\"\xff\": 1}", 0), HasSubstr("not valid JSON"));
  std::string w = R"("w": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]})";
  EXPECT_THAT(failure("{" + w + ", " + w + "}", 0), HasSubstr("field 'w' stands twice"));
  EXPECT_THAT(failure("{\"w\": " + std::string(5000, '['), 0), HasSubstr("nested deeper"));
}

TEST(Safetensors, LegalCorners) {
  TemporaryFolder folder;
  std::string header = R"({"e": {"dtype": "F32", "shape": [0, 3], "data_offsets": [0, 0]},)"
                       R"("s": {"dtype": "F64", "shape": [], "data_offsets": [0, 8]},)"
                       R"("e2": {"dtype": "I8", "shape": [2, 0], "data_offsets": [8, 8]}}     )";
  auto file = SafetensorsFile::open(folder.write("x.safetensors", file_bytes(header, 8)));
  EXPECT_EQ(file.tensor("e").shape(), (Dims{0, 3}));
  EXPECT_EQ(file.tensor("e2").numel(), 0);
  EXPECT_EQ(file.tensor("s").shape(), Dims{});
  auto empty_file = SafetensorsFile::open(folder.write("y.safetensors", file_bytes("{}", 0)));
  EXPECT_TRUE(empty_file.tensors().empty());
}

TEST(Safetensors, MisalignedDataIsCopied) {
  TemporaryFolder folder;
  std::string header = R"({"f": {"dtype": "F32", "shape": [1], "data_offsets": [1, 5]},)"
                       R"("b": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}})";
  std::string bytes = file_bytes(header, 1);
  float value = 2.5f;
  bytes.append(reinterpret_cast<char*>(&value), 4);
  auto file = SafetensorsFile::open(folder.write("x.safetensors", bytes));
  EXPECT_EQ(file.tensor("f").data<float>()[0], 2.5f);
}

TEST(Safetensors, TypesWithoutADTypeAreListedAndRefusedWhenRead) {
  TemporaryFolder folder;
  std::string header = R"({"q": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [0, 4]},)"
                       R"("w": {"dtype": "U8", "shape": [4], "data_offsets": [4, 8]}})";
  auto path = folder.write("x.safetensors", file_bytes(header, 8));
  auto file = SafetensorsFile::open(path);
  ASSERT_EQ(file.tensors().size(), 1u);
  ASSERT_EQ(file.unsupported().size(), 1u);
  EXPECT_EQ(file.unsupported()[0].dtype, "F8_E4M3");
  EXPECT_TRUE(file.contains("q"));
  EXPECT_EQ(error_of<FormatError>([&] { file.tensor("q"); }),
            path.string() + ": tensor 'q': dtype F8_E4M3 cannot be read");
  EXPECT_EQ(file.tensor("w").numel(), 4);
}

TEST(SafetensorsHostile, BooleansAreZeroOrOne) {
  TemporaryFolder folder;
  std::string header = R"({"b": {"dtype": "BOOL", "shape": [2], "data_offsets": [0, 2]}})";
  std::string bytes = with_length(header.size(), header + std::string("\1\2"));
  auto file = SafetensorsFile::open(folder.write("x.safetensors", bytes));
  EXPECT_THAT(error_of<FormatError>([&] { file.tensor("b"); }),
              HasSubstr("tensor 'b': element 1: a BOOL must be 0 or 1"));
}

// ---- index ----

std::string index_failure(const TemporaryFolder& folder, const std::string& weight_map) {
  auto path = folder.write("model.safetensors.index.json", "{\"weight_map\": " + weight_map + "}");
  return error_of<FormatError>([&] { SafetensorsFile::open(path); });
}

TEST(SafetensorsHostile, ShardNamesThatLeaveTheFolder) {
  TemporaryFolder folder;
  for (std::string name : {"../x.safetensors", "/etc/passwd", "/tmp/x.safetensors", "a/../../x", "a/x.safetensors", "",
                           "C:\\\\x", "C:\\\\x.safetensors", "C:x.safetensors", "x\\u0000y.safetensors",
                           "x.safetensors\\u0000", "..", ".safetensors", "model.bin"})
    EXPECT_THAT(index_failure(folder, "{\"t\": \"" + name + "\"}"),
                HasSubstr("weight_map 't': must name a .safetensors file in the same folder"))
        << name;
  EXPECT_THAT(index_failure(folder, "{\"t\": 3}"), HasSubstr("weight_map 't': must name"));
  EXPECT_THAT(index_failure(folder, "[]"), HasSubstr("weight_map: expected object"));
}

TEST(SafetensorsHostile, NothingIsOpenedBeforeEveryNameIsChecked) {
  TemporaryFolder folder;  // a.safetensors does not exist: opening it first would give another error
  EXPECT_THAT(index_failure(folder, R"({"s": "a.safetensors", "t": "../b.safetensors"})"), HasSubstr("weight_map 't'"));
  std::string many = "{";
  for (int i = 0; i < 10000; ++i) many += fmt::format("{}\"t{}\": \"s{}.safetensors\"", i ? ", " : "", i, i);
  EXPECT_THAT(index_failure(folder, many + "}"), HasSubstr("weight_map 't1000': more than 1000 shards"));
}

std::string u8_file(const std::string& name) {
  return file_bytes(R"({")" + name + R"(": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}})", 1);
}

TEST(SafetensorsHostile, IndexAndShardsDisagree) {
  TemporaryFolder folder;
  folder.write("1.safetensors", u8_file("a"));
  folder.write("2.safetensors", u8_file("b"));
  EXPECT_THAT(index_failure(folder, R"({"a": "1.safetensors", "b": "2.safetensors", "c": "2.safetensors"})"),
              HasSubstr("weight_map 'c': names 2.safetensors, which does not hold it"));
  EXPECT_THAT(index_failure(folder, R"({"b": "1.safetensors", "a": "2.safetensors"})"),
              HasSubstr("which does not hold it"));
  folder.write("2.safetensors", u8_file("a"));
  EXPECT_THAT(index_failure(folder, R"({"a": "1.safetensors", "b": "2.safetensors"})"),
              HasSubstr("tensor 'a' is also in " + (folder / "1.safetensors").string()));
  folder.write("2.safetensors", u8_file("extra"));
  EXPECT_THAT(index_failure(folder, R"({"a": "1.safetensors", "extra2": "2.safetensors"})"), HasSubstr("extra2"));
  std::string two = R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},)"
                    R"("b": {"dtype": "U8", "shape": [1], "data_offsets": [1, 2]}})";
  folder.write("1.safetensors", file_bytes(two, 2));
  EXPECT_THAT(index_failure(folder, R"({"a": "1.safetensors"})"),
              HasSubstr("tensor 'b' is missing in model.safetensors.index.json"));
}

TEST(Safetensors, ASymbolicLinkInTheFolderIsFollowed) {  // Hugging Face caches consist of them
  TemporaryFolder folder, blobs;
  std::filesystem::create_symlink(blobs.write("0123abcd", u8_file("a")), folder / "1.safetensors");
  EXPECT_EQ(index_failure(folder, R"({"a": "1.safetensors"})"), "");
}

TEST(SafetensorsHostile, FolderWithBothFormsThatDisagree) {
  TemporaryFolder folder;
  folder.write("1.safetensors", u8_file("a"));
  folder.write("model.safetensors.index.json", R"({"weight_map": {"a": "1.safetensors"}})");
  folder.write("model.safetensors", u8_file("b"));
  EXPECT_THAT(error_of<FormatError>([&] { SafetensorsFile::open(folder.path()); }),
              HasSubstr("model.safetensors lacks 'a'"));
  folder.write("model.safetensors", u8_file("a"));
  EXPECT_EQ(SafetensorsFile::open(folder.path()).tensors().size(), 1u);
}

// ---- writing ----

std::vector<std::pair<std::string, Tensor>> every_dtype() {
  std::vector<std::pair<std::string, Tensor>> all;
  for (DType dtype : {DType::u8, DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32, DType::i8,
                      DType::boolean}) {
    Tensor t = empty({3, 1}, {dtype, Device::cpu()});
    copy_(t, from_values<float>({0, 1, 1}, {3, 1}));
    all.emplace_back("t." + std::string(dtype_name(dtype)), t);
  }
  all.emplace_back("empty \"quoted\" é", zeros({0, 4}));
  all.emplace_back("scalar", scalar(7));
  return all;
}

TEST(Safetensors, WritesWhatItReads) {
  TemporaryFolder folder;
  auto tensors = every_dtype();
  save_safetensors(folder / "x.safetensors", tensors, {{"format", "pt"}, {"b", "\"\n"}});
  auto file = SafetensorsFile::open(folder / "x.safetensors");
  EXPECT_EQ(file.tensors().size(), tensors.size());
  EXPECT_EQ(file.metadata(), (std::map<std::string, std::string>{{"format", "pt"}, {"b", "\"\n"}}));
  for (auto& [name, t] : tensors) {
    Tensor back = file.tensor(name);
    EXPECT_EQ(back.dtype(), t.dtype()) << name;
    EXPECT_EQ(back.shape(), t.shape()) << name;
    EXPECT_EQ(to_vector<double>(back), to_vector<double>(t)) << name;
    EXPECT_EQ(back.storage()->kind(), MemoryKind::mapped) << name << ": must be aligned, so not copied";
  }
  save_safetensors(folder / "y.safetensors", tensors, file.metadata());
  EXPECT_EQ(read_file(folder / "x.safetensors"), read_file(folder / "y.safetensors"));
}

TEST(Safetensors, WritesStridedTensorsRowMajor) {
  TemporaryFolder folder;
  Tensor t = from_values<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  Tensor transposed = alias(t, t.layout().transpose(0, 1));
  save_safetensors(folder / "x.safetensors", {{"t", transposed}});
  EXPECT_THAT(to_vector<float>(SafetensorsFile::open(folder / "x.safetensors").tensor("t")),
              ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST(Safetensors, RefusesNamesItCouldNotReadBack) {
  TemporaryFolder folder;
  auto path = folder / "x.safetensors";
  Tensor t = scalar(1);
  EXPECT_THAT(error_of<Error>([&] {
                save_safetensors(path, {{"a", t}, {"a", t}});
              }),
              HasSubstr("two tensors are called 'a'"));
  EXPECT_THAT(error_of<Error>([&] { save_safetensors(path, {{"__metadata__", t}}); }), HasSubstr("__metadata__"));
  EXPECT_THAT(error_of<Error>([&] { save_safetensors(path, {{"\xff", t}}); }), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of<Error>([&] { save_safetensors(path, {{"a", Tensor()}}); }), HasSubstr("undefined"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Safetensors, WritesShardsAndRemovesThoseOfAnEarlierSave) {
  TemporaryFolder folder;
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (int i = 0; i < 5; ++i) tensors.emplace_back(fmt::format("t{}", i), full({10}, i));
  tensors.emplace_back("large", full({100}, 9));
  save_safetensors(folder / "model.safetensors", {{"old", scalar(1)}});
  save_safetensors_sharded(folder.path(), tensors, 80);  // t0 t1 | t2 t3 | t4 | large
  folder.write("notes.safetensors", "not ours");
  EXPECT_TRUE(std::filesystem::exists(folder / "model-00004-of-00004.safetensors"));
  save_safetensors_sharded(folder.path(), tensors, 100000);
  auto file = SafetensorsFile::open(folder.path());
  EXPECT_EQ(file.tensors().size(), 6u);
  EXPECT_EQ(file.tensor("t3").data<float>()[9], 3);
  EXPECT_FALSE(std::filesystem::exists(folder / "model.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(folder / "model-00004-of-00004.safetensors"));
  EXPECT_TRUE(std::filesystem::exists(folder / "notes.safetensors"));
  Json index = Json::parse_file(folder / "model.safetensors.index.json");
  EXPECT_EQ(index.at("metadata").get<int64_t>("total_size"), 600);
}

// The system refuses to write beyond the limit, as a full disk would.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_;
};

TEST(Safetensors, AFullDiskLeavesTheOldFile) {
  TemporaryFolder folder;
  auto path = folder / "x.safetensors";
  save_safetensors(path, {{"old", scalar(1)}});
  std::string old = read_file(path), error;
  Tensor large = zeros({100000});
  for (rlim_t limit : {rlim_t{0}, rlim_t{5}, rlim_t{50}, rlim_t{4096}, rlim_t{400000}}) {
    FileSizeLimit full(limit);
    error = error_of<Error>([&] { save_safetensors(path, {{"large", large}}); });
    EXPECT_THAT(error, HasSubstr(path.string()));
    EXPECT_THAT(error, HasSubstr("needs 400088 bytes"));  // 8, a header of 75 filled up to 80, the data
    EXPECT_EQ(read_file(path), old);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1) << "no temporary file stays";
  }
}

}  // namespace
}  // namespace strata
