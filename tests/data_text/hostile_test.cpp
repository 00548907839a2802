// Broken, lying and absurd tokenizer files: a FormatError that names file and field, never a crash.
#include <gmock/gmock.h>

#include <filesystem>
#include <functional>

#include "tensor/error.h"
#include "tests/data_text/build.h"
#include "tests/data_text/golden.h"

namespace strata::text {
namespace {

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const FormatError& e) {
    return e.what();
  }
  return "no error";
}

std::string error_of(const Json& json, const Json& config = Json()) {
  return error_of([&] { Tokenizer::from_json(json, config); });
}

Json good() {
  return bpe_json({"a", "b", "ab"}, {{"a", "b"}});
}

Json with_model(const char* key, const Json& value) {
  Json json = good(), model = json.at("model");
  return json.set("model", model.set(key, value));
}

Json parse(const char* text) {
  return Json::parse(text, "t.json");
}

TEST(HostileTokenizer, Vocabulary) {
  EXPECT_EQ(error_of(good()), "no error");
  EXPECT_EQ(error_of(parse("[]")), "tokenizer.json: expected object, got array");
  EXPECT_EQ(error_of(parse("{}")), "t.json: field 'model': is missing");
  EXPECT_EQ(error_of(parse(R"({"model": 3})")), "t.json: field 'model': expected object, got integer");
  EXPECT_EQ(error_of(with_model("type", "Unigram")),
            "tokenizer.json: field 'model.type': only BPE models are supported, got '\"Unigram\"'");
  EXPECT_EQ(error_of(with_model("vocab", Json::array())),
            "tokenizer.json: field 'model.vocab': expected object, got array");
  EXPECT_EQ(error_of(with_model("vocab", parse(R"({"a": -1})"))),
            "tokenizer.json: field 'model.vocab.a': expected an id, got -1");
  EXPECT_EQ(error_of(with_model("vocab", parse(R"({"a": 1.5})"))),
            "tokenizer.json: field 'model.vocab.a': expected an id, got 1.5");
  EXPECT_EQ(error_of(with_model("vocab", parse(R"({"a": 9223372036854775808})"))),
            "tokenizer.json: field 'model.vocab.a': expected an id, got 9223372036854775808");
  EXPECT_EQ(error_of(with_model("vocab", parse(R"({"a": 0, "b": 0})"))),
            "tokenizer.json: field 'model.vocab': id 0 is already 'a', got also 'b'");
  EXPECT_EQ(error_of(with_model("vocab", parse(R"({"a": 2147483647})"))),
            "tokenizer.json: field 'model.vocab': id must be in [0, number of tokens + 1048576], got 2147483647 with 0 "
            "tokens before it");
}

TEST(HostileTokenizer, Merges) {
  EXPECT_EQ(error_of(with_model("merges", parse(R"(["a b", "a c"])"))),
            "tokenizer.json: field 'model.merges[1]': token 'c' is not in the vocabulary");
  EXPECT_EQ(error_of(with_model("merges", parse(R"(["b a"])"))),
            "tokenizer.json: field 'model.merges[0]': token 'ba' is not in the vocabulary");
  EXPECT_EQ(error_of(with_model("merges", parse(R"([["a", "b", "c"]])"))),
            "tokenizer.json: field 'model.merges[0]': expected two tokens, got [\"a\", \"b\", \"c\"]");
  EXPECT_EQ(error_of(with_model("merges", parse(R"([7])"))),
            "tokenizer.json: field 'model.merges[0]': expected two tokens with one blank between, got 7");
  EXPECT_EQ(error_of(with_model("merges", parse(R"(["a  b"])"))),
            "tokenizer.json: field 'model.merges[0]': expected two tokens with one blank between, got \"a  b\"");
  EXPECT_EQ(error_of(with_model("merges", "a b")), "tokenizer.json: field 'model.merges': expected array, got string");
}

TEST(HostileTokenizer, MergesThatMakeNoSense) {
  // "" joined with itself is "" again: it must neither loop nor grow
  auto t = Tokenizer::from_json(bpe_json({"", "a", "aa"}, {{"", ""}, {"", "a"}, {"a", "a"}, {"a", ""}}));
  EXPECT_EQ(t->encode("aaaa"), (std::vector<TokenId>{2, 2}));
  EXPECT_EQ(t->encode(std::string(1000, 'a')), std::vector<TokenId>(500, 2));
}

TEST(HostileTokenizer, ModelOptions) {
  EXPECT_EQ(error_of(with_model("unk_token", "<unk>")),
            "tokenizer.json: field 'model.unk_token': token '<unk>' is not in the vocabulary");
  EXPECT_EQ(error_of(with_model("end_of_word_suffix", "</w>")),
            "tokenizer.json: field 'model.end_of_word_suffix': is not supported, got '\"</w>\"'");
  EXPECT_EQ(error_of(with_model("continuing_subword_prefix", "##")),
            "tokenizer.json: field 'model.continuing_subword_prefix': is not supported, got '\"##\"'");
  EXPECT_EQ(error_of(with_model("dropout", 0.1)), "tokenizer.json: field 'model.dropout': is not supported, got 0.1");
  EXPECT_EQ(error_of(with_model("byte_fallback", "yes")),
            "tokenizer.json: field 'model.byte_fallback': expected bool, got string");
}

TEST(HostileTokenizer, AddedTokens) {
  auto with = [](const char* text) { return error_of(good().set("added_tokens", parse(text))); };
  EXPECT_EQ(with(R"([{"id": 0, "content": "x"}])"),
            "tokenizer.json: field 'added_tokens[0]': id 0 is already 'a', got also 'x'");
  EXPECT_EQ(with(R"([{"id": 5, "content": "a"}])"),
            "tokenizer.json: field 'added_tokens[0]': token 'a' has id 5, but id 0 in the vocabulary");
  EXPECT_EQ(with(R"([{"id": -3, "content": "x"}])"),
            "tokenizer.json: field 'added_tokens[0].id': id must be in [0, 2^31), got -3");
  EXPECT_EQ(with(R"([{"content": "x"}])"), "tokenizer.json: field 'added_tokens[0].id': is missing");
  EXPECT_EQ(with(R"([{"id": 3}])"), "tokenizer.json: field 'added_tokens[0].content': is missing");
  EXPECT_EQ(with(R"([{"id": 3, "content": "x"}, {"id": 3, "content": "x"}])"),
            "tokenizer.json: field 'added_tokens[1]': id 3 is listed twice");
  EXPECT_EQ(with(R"([3])"), "tokenizer.json: field 'added_tokens[0]': expected object, got integer");
  EXPECT_EQ(with(R"({"a": 1})"), "tokenizer.json: field 'added_tokens': expected array, got object");
}

TEST(HostileTokenizer, UnknownStepsAreNamed) {
  auto with = [](const char* key, const char* text) { return error_of(good().set(key, parse(text))); };
  EXPECT_EQ(with("normalizer", R"({"type": "Nmt"})"),
            "tokenizer.json: field 'normalizer.type': unknown normalizer 'Nmt'");
  EXPECT_EQ(with("normalizer", R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Precompiled"}]})"),
            "tokenizer.json: field 'normalizer.normalizers[1].type': unknown normalizer 'Precompiled'");
  EXPECT_EQ(with("pre_tokenizer", R"({"type": "UnicodeScripts"})"),
            "tokenizer.json: field 'pre_tokenizer.type': unknown pre-tokenizer 'UnicodeScripts'");
  EXPECT_EQ(with("pre_tokenizer", R"({"type": "Split", "pattern": {"Glob": "*"}, "behavior": "Isolated"})"),
            "tokenizer.json: field 'pre_tokenizer.pattern': expected String or Regex");
  EXPECT_EQ(with("pre_tokenizer", R"({"type": "Split", "pattern": {"Regex": "a"}, "behavior": "Shredded"})"),
            "tokenizer.json: field 'pre_tokenizer.behavior': unknown behavior 'Shredded'");
  EXPECT_EQ(
      with("pre_tokenizer", R"({"type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated"})"),
      "tokenizer.json: field 'pre_tokenizer.pattern': pattern '(a' does not compile: missing closing parenthesis");
  EXPECT_EQ(with("pre_tokenizer", R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "last"})"),
            "tokenizer.json: field 'pre_tokenizer.prepend_scheme': expected first, always or never, got 'last'");
  EXPECT_EQ(with("pre_tokenizer", R"({"type": "Metaspace", "replacement": ""})"),
            "tokenizer.json: field 'pre_tokenizer.replacement': expected one character, got ''");
  EXPECT_EQ(with("pre_tokenizer", R"({"kind": "x"})"), "tokenizer.json: field 'pre_tokenizer.type': is missing");
  EXPECT_EQ(with("decoder", R"({"type": "WordPiece"})"),
            "tokenizer.json: field 'decoder.type': unknown decoder 'WordPiece'");
  EXPECT_EQ(with("decoder", R"({"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "ByteFallback"}]})"),
            "tokenizer.json: field 'decoder.decoders[1].type': ByteFallback after Fuse is not supported");
  EXPECT_EQ(with("post_processor", R"({"type": "Frame"})"),
            "tokenizer.json: field 'post_processor.type': unknown post-processor 'Frame'");
}

TEST(HostileTokenizer, PostProcessor) {
  auto with = [](const char* text) { return error_of(good().set("post_processor", parse(text))); };
  EXPECT_EQ(
      with(R"({"type": "TemplateProcessing", "special_tokens": {}, "single": [{"SpecialToken": {"id": "<s>"}}]})"),
      "tokenizer.json: field 'post_processor.single[0]': '<s>' is not among special_tokens");
  EXPECT_EQ(with(R"({"type": "TemplateProcessing", "special_tokens": {"<s>": {"ids": [77]}},
                     "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}]})"),
            "tokenizer.json: field 'post_processor.single[0].ids': there is no token 77");
  EXPECT_EQ(with(R"({"type": "TemplateProcessing", "special_tokens": {}, "single": []})"),
            "tokenizer.json: field 'post_processor.single': the text A is missing");
  EXPECT_EQ(with(R"({"type": "TemplateProcessing", "special_tokens": {}, "single": [{"Sequence": {"id": "B"}}]})"),
            "tokenizer.json: field 'post_processor.single[0]': expected the text A once, got 'B'");
  EXPECT_EQ(with(R"({"type": "RobertaProcessing", "sep": ["b", 1], "cls": ["a", 9]})"),
            "tokenizer.json: field 'post_processor.cls': there is no token 9");
}

TEST(HostileTokenizer, Configuration) {
  auto with = [](const char* text) { return error_of(good(), Json::parse(text, "c.json")); };
  EXPECT_EQ(with(R"({"bos_token": "a", "eos_token": {"content": "b"}, "pad_token": null})"), "no error");
  EXPECT_EQ(with(R"({"eos_token": "<eos>"})"), "c.json: field 'eos_token': token '<eos>' is not in the vocabulary");
  EXPECT_EQ(with(R"({"eos_token": 2})"), "c.json: field 'eos_token': expected string, got integer");
  EXPECT_EQ(with(R"({"chat_template": 2})"), "c.json: field 'chat_template': expected string, got integer");
  EXPECT_EQ(with(R"({"chat_template": [{"name": "tool_use", "template": "x"}]})"),
            "c.json: field 'chat_template': no template is named 'default'");
  EXPECT_EQ(with(R"({"added_tokens_decoder": {"x": {"content": "y"}}})"),
            "c.json: field 'added_tokens_decoder.x': expected an id, got 'x'");
  EXPECT_EQ(with(R"({"added_tokens_decoder": {"1": {"content": "y"}}})"),
            "c.json: field 'added_tokens_decoder.1': token 1 is 'y' here, but 'b' in tokenizer.json");
  EXPECT_EQ(with(R"({"added_tokens_decoder": {"3": {"content": "<new>", "special": true}}})"), "no error");
}

TEST(HostileTokenizer, Files) {
  auto folder = std::filesystem::path(testing::TempDir()) / "strata_hostile_tokenizer";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  auto write = [&](const char* name, const std::string& bytes) {
    std::ofstream(folder / name, std::ios::binary) << bytes;
  };
  EXPECT_THROW(Tokenizer::from_file(folder), Error);
  EXPECT_THROW(Tokenizer::from_file(folder / "none.json"), Error);
  std::string packed = [] {
    std::ifstream in(data_path("tokenizers/gpt2/tokenizer.json.gz"), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }();
  ASSERT_GT(packed.size(), 1000u);
  std::string path = (folder / "tokenizer.json.gz").string();
  write("tokenizer.json.gz", packed.substr(0, packed.size() / 2));
  EXPECT_EQ(error_of([&] { Tokenizer::from_file(folder); }),
            path + ": gzip data ends early, at byte " + std::to_string(packed.size() / 2));
  std::string damaged = packed;
  for (size_t i = 500; i < 600; ++i) damaged[i] = static_cast<char>(~damaged[i]);
  write("tokenizer.json.gz", damaged);
  EXPECT_THROW(Tokenizer::from_file(folder), FormatError);
  write("tokenizer.json.gz", packed);
  EXPECT_EQ(Tokenizer::from_file(folder)->vocab_size(), 50257);
  write("tokenizer_config.json", "[1]");
  EXPECT_EQ(error_of([&] { Tokenizer::from_file(folder); }),
            (folder / "tokenizer_config.json").string() + ": expected object, got array");
  write("tokenizer_config.json", R"({"eos_token": "<|endoftext|>"})");
  write("chat_template.jinja", "{{ x }}");
  write("special_tokens_map.json", R"({"bos_token": "<|endoftext|>", "eos_token": "!"})");
  auto t = Tokenizer::from_file(folder);
  EXPECT_EQ(t->chat_template(), "{{ x }}");
  EXPECT_EQ(t->eos(), 50256);
  EXPECT_EQ(t->bos(), 50256);
  EXPECT_THROW(read_maybe_gzip(folder / "tokenizer.json.gz", 1000), FormatError);  // a bomb, if it were larger
}

// Every prefix of a real file, and the file with one byte changed, is either fine or a FormatError.
TEST(HostileTokenizer, CutAndChangedFiles) {
  std::string text = read_maybe_gzip(data_path("stories260K/tokenizer.json"));
  auto load = [](const std::string& s) {
    try {
      auto t = Tokenizer::from_json(Json::parse(s, "cut"));
      return t->decode(t->encode("Once upon a time <s> \xF0\x9F\x98\x80")).size() < 1000;
    } catch (const FormatError& e) {
      return std::string(e.what()).find("cut") != std::string::npos;
    }
  };
  for (size_t n = 0; n < text.size(); n += 97) EXPECT_TRUE(load(text.substr(0, n))) << n;
  uint32_t random = 1;
  for (int i = 0; i < 600; ++i) {
    std::string changed = text;
    random = random * 1664525 + 1013904223;
    size_t at = random % changed.size();
    random = random * 1664525 + 1013904223;
    changed[at] = static_cast<char>("0123456789{}[]\",:-ae\xE2"[(random >> 16) % 21]);
    EXPECT_TRUE(load(changed)) << at << " " << changed[at];
  }
}

}  // namespace
}  // namespace strata::text
