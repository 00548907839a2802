// Tokenizers from GGUF metadata. The metadata is made from the golden tokenizers, whose ids are known.
#include <cstring>
#include <map>

#include "tensor/error.h"
#include "tests/data_text/build.h"
#include "tests/data_text/golden.h"

namespace strata::text {
namespace {

using Ids = std::vector<TokenId>;

// tokenizer.json as llama.cpp's converter writes it: holes are filled, types say what is special.
Json gguf_of(const Json& json, const char* model, const char* pre) {
  std::vector<std::string> tokens;
  std::vector<int> types;
  auto put = [&](int64_t id, const std::string& text, int type) {
    while (static_cast<int64_t>(tokens.size()) <= id) {
      tokens.push_back("[PAD" + std::to_string(tokens.size()) + "]");
      types.push_back(5);
    }
    tokens[static_cast<size_t>(id)] = text;
    types[static_cast<size_t>(id)] = type;
  };
  for (const auto& [text, id] : json.at("model").at("vocab").members())
    put(id.as_int(), text, text.size() == 6 && text.starts_with("<0x") ? 6 : 1);
  for (const Json& a : json.at("added_tokens").items())
    put(a.get<int64_t>("id"), a.get<std::string>("content"), a.get<bool>("special") ? 3 : 4);
  Json meta = Json::object(), token_list = Json::array(), type_list = Json::array();
  for (const auto& t : tokens) token_list.push(t);
  for (int t : types) type_list.push(t);
  meta.set("tokenizer.ggml.model", model).set("tokenizer.ggml.tokens", token_list);
  meta.set("tokenizer.ggml.token_type", type_list).set("tokenizer.ggml.pre", pre);
  return meta;
}

Json byte_level_gguf(const Json& json, const char* pre) {
  Json meta = gguf_of(json, "gpt2", pre), merges = Json::array();
  for (const Json& m : json.at("model").at("merges").items())
    merges.push(m.is_string() ? m : Json(m.items()[0].as_string() + " " + m.items()[1].as_string()));
  return meta.set("tokenizer.ggml.merges", merges);
}

// The scores that the merges came from: the earlier a token is merged, the higher its score.
Json sentencepiece_gguf(const Json& json) {
  Json meta = gguf_of(json, "llama", "default");
  std::map<std::string, double> score;
  const auto& merges = json.at("model").at("merges").items();
  for (size_t i = 0; i < merges.size(); ++i) {
    std::string text = merges[i].as_string();
    text.erase(text.find(' '), 1);
    score.emplace(text, -static_cast<double>(i));
  }
  Json scores = Json::array();
  for (const Json& t : meta.at("tokenizer.ggml.tokens").items())
    scores.push(score.contains(t.as_string()) ? score[t.as_string()] : 0.0);
  return meta.set("tokenizer.ggml.scores", scores);
}

void expect_goldens(const Tokenizer& t, const std::string& file, bool with_special) {
  for (const Json& r : read_jsonl(file)) {
    std::string text = r.get<std::string>("text");
    if (text.find("\uFEFF") != std::string::npos) continue;  // see golden_test.cpp
    Ids ids = ids_of(r.at("ids"));
    EXPECT_EQ(t.encode(text, {.parse_special = true}), ids) << text;
    EXPECT_EQ(t.decode(ids), r.get<std::string>("decoded")) << text;
    if (with_special) {
      EXPECT_EQ(t.encode(text, {.add_special = true, .parse_special = true}), ids_of(r.at("ids_special"))) << text;
    }
  }
}

TEST(Gguf, ByteLevelGoldens) {
  expect_goldens(*Tokenizer::from_gguf(byte_level_gguf(tokenizer_json("gpt2"), "gpt-2")),
                 "tokenizers/gpt2/golden.jsonl", true);
  expect_goldens(*Tokenizer::from_gguf(byte_level_gguf(tokenizer_json("qwen3"), "qwen2")),
                 "tokenizers/qwen3/golden.jsonl", true);
  expect_goldens(*Tokenizer::from_gguf(byte_level_gguf(tokenizer_json("cl100k_base"), "dbrx")),
                 "tokenizers/cl100k_base/golden.jsonl", true);
}

TEST(Gguf, SentencePieceGoldens) {
  expect_goldens(*Tokenizer::from_gguf(sentencepiece_gguf(tokenizer_json("mistral-7b-v0.1"))),
                 "tokenizers/mistral-7b-v0.1/golden_legacy.jsonl", true);
  expect_goldens(*Tokenizer::from_gguf(sentencepiece_gguf(Json::parse_file(data_path("stories260K/tokenizer.json")))),
                 "stories260K/tokenizer_golden.jsonl", true);
}

// The scores of the original file (llama2.c: max length, then score, length and text of each token). It spells blanks
// as spaces and has neither types nor the names of the byte tokens, which stand at 3..258 in every such vocabulary.
TEST(Gguf, SentencePieceWithTheOriginalScores) {
  std::string bin = read_maybe_gzip(data_path("stories260K/tok512.bin"));
  Json tokens = Json::array(), scores = Json::array(), types = Json::array();
  size_t at = 4;
  for (int id = 0; id < 512; ++id) {
    float score = 0;
    int32_t length = 0;
    ASSERT_LE(at + 8, bin.size());
    std::memcpy(&score, &bin[at], 4);
    std::memcpy(&length, &bin[at + 4], 4);
    std::string text, spelled = bin.substr(at + 8, static_cast<size_t>(length));
    for (char c : spelled) text += c == ' ' ? std::string("\u2581") : std::string(1, c);
    at += 8 + static_cast<size_t>(length);
    if (id < 3) text = std::vector<std::string>{"<unk>", "<s>", "</s>"}[static_cast<size_t>(id)];
    tokens.push(text);
    scores.push(double{score});
    types.push(id == 0 ? 2 : id < 3 ? 3 : id < 259 ? 6 : 1);
  }
  Json meta = Json::object();
  meta.set("tokenizer.ggml.model", "llama").set("tokenizer.ggml.tokens", tokens).set("tokenizer.ggml.scores", scores);
  meta.set("tokenizer.ggml.token_type", types);
  expect_goldens(*Tokenizer::from_gguf(meta), "stories260K/tokenizer_golden.jsonl", true);
}

// A tokenizer.json with this split and no merges tells pieces apart as well as ids can: compare the whole path.
TEST(Gguf, SmollmCutsDigitsFirst) {
  Json json = tokenizer_json("gpt2");
  auto gguf = Tokenizer::from_gguf(byte_level_gguf(json, "smollm"));
  Json digits = Json::object(), bytes = Json::object(), sequence = Json::object();
  digits.set("type", "Digits").set("individual_digits", true);
  bytes.set("type", "ByteLevel").set("add_prefix_space", false);
  sequence.set("type", "Sequence").set("pretokenizers", Json::array().push(digits).push(bytes));
  auto hf = Tokenizer::from_json(json.set("pre_tokenizer", sequence));
  for (const Json& r : read_jsonl("tokenizers/gpt2/golden.jsonl"))
    EXPECT_EQ(gguf->encode(r.get<std::string>("text")), hf->encode(r.get<std::string>("text")));
  EXPECT_EQ(gguf->encode("a 12"), (Ids{64, 220, 16, 17}));
}

TEST(Gguf, Llama3GroupsDigitsTakesWholeWordsAndAddsBos) {
  Json meta = byte_level_gguf(tokenizer_json("cl100k_base"), "llama-bpe");
  meta.set("tokenizer.ggml.bos_token_id", 100257).set("tokenizer.ggml.eos_token_id", 100258);
  auto t = Tokenizer::from_gguf(meta);
  EXPECT_TRUE(t->adds_bos());
  EXPECT_EQ(t->encode("1234567", {.add_special = true}), (Ids{100257, 4513, 10961, 22}));
  EXPECT_FALSE(Tokenizer::from_gguf(meta.set("tokenizer.ggml.add_bos_token", false))->adds_bos());
  t = Tokenizer::from_gguf(meta.set("tokenizer.ggml.add_eos_token", true));
  EXPECT_EQ(t->encode("1", {.add_special = true}), (Ids{16, 100258}));
}

TEST(Gguf, MissingByteTokensVanish) {
  // SmolLM2's vocabulary has no token for 21 of the bytes: they are dropped, as llama.cpp and Hugging Face do.
  Json meta = Json::object();
  meta.set("tokenizer.ggml.model", "gpt2").set("tokenizer.ggml.pre", "smollm");
  meta.set("tokenizer.ggml.tokens", Json::array().push("a").push("b").push("ab").push("<|im_end|>"));
  meta.set("tokenizer.ggml.token_type", Json::array().push(1).push(1).push(1).push(3));
  meta.set("tokenizer.ggml.merges", Json::array().push("a b"));
  auto t = Tokenizer::from_gguf(meta);
  EXPECT_EQ(t->encode("a\x04 b"), (Ids{0, 1}));
  EXPECT_EQ(t->encode("ab<|im_end|>", {.parse_special = true}), (Ids{2, 3}));
  EXPECT_EQ(t->encode("ab<|im_end|>"), Ids{2});
  EXPECT_EQ(t->decode(Ids{2, 3}, true), "ab");
}

TEST(Gguf, RolesAndTemplate) {
  Json meta = byte_level_gguf(tokenizer_json("gpt2"), "gpt-2");
  meta.set("tokenizer.ggml.eos_token_id", 50256).set("tokenizer.ggml.padding_token_id", 0);
  meta.set("tokenizer.ggml.unknown_token_id", 1).set("tokenizer.chat_template", "{{ messages }}");
  auto t = Tokenizer::from_gguf(meta);
  EXPECT_EQ(t->bos(), std::nullopt);
  EXPECT_EQ(t->eos(), 50256);
  EXPECT_EQ(t->pad(), 0);
  EXPECT_EQ(t->unk(), 1);
  EXPECT_EQ(t->chat_template(), "{{ messages }}");
  auto spm = Tokenizer::from_gguf(sentencepiece_gguf(Json::parse_file(data_path("stories260K/tokenizer.json"))));
  EXPECT_EQ(spm->bos(), 1);
  EXPECT_EQ(spm->eos(), 2);
  EXPECT_EQ(spm->unk(), 0);
  EXPECT_EQ(spm->pad(), std::nullopt);
}

std::string error_of(const Json& meta) {
  try {
    Tokenizer::from_gguf(meta);
  } catch (const FormatError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Gguf, SaysWhatIsWrong) {
  Json good = Json::object();
  good.set("tokenizer.ggml.model", "gpt2").set("tokenizer.ggml.pre", "gpt-2");
  good.set("tokenizer.ggml.tokens", Json::array().push("a").push("b").push("ab"));
  good.set("tokenizer.ggml.merges", Json::array().push("a b"));
  EXPECT_EQ(error_of(good), "no error");
  auto with = [&](const char* key, const Json& value) { return error_of(Json(good).set(key, value)); };
  EXPECT_EQ(with("tokenizer.ggml.pre", "bogus"),
            "gguf metadata: field 'tokenizer.ggml.pre': unknown pre-tokenizer 'bogus'");
  EXPECT_EQ(with("tokenizer.ggml.pre", 3), "gguf metadata: field 'tokenizer.ggml.pre': expected string, got integer");
  EXPECT_EQ(with("tokenizer.ggml.model", "t5"),
            "gguf metadata: field 'tokenizer.ggml.model': unknown tokenizer model 't5'");
  EXPECT_EQ(with("tokenizer.ggml.tokens", Json::array()),
            "gguf metadata: field 'tokenizer.ggml.tokens': expected at least one token, got 0");
  EXPECT_EQ(with("tokenizer.ggml.tokens", Json::array().push("a").push("a")),
            "gguf metadata: field 'tokenizer.ggml.tokens': token 'a' stands twice, as id 0 and 1");
  EXPECT_EQ(with("tokenizer.ggml.tokens", Json::array().push("a").push("\xFF")),
            "gguf metadata: field 'tokenizer.ggml.tokens[1]': expected a string in UTF-8, got string");
  EXPECT_EQ(with("tokenizer.ggml.merges", Json::array().push("a c")),
            "gguf metadata: field 'tokenizer.ggml.merges[0]': token 'c' is not in the vocabulary");
  EXPECT_EQ(with("tokenizer.ggml.merges", Json::array().push("ab")),
            "gguf metadata: field 'tokenizer.ggml.merges[0]': expected two tokens with one blank between, got \"ab\"");
  EXPECT_EQ(with("tokenizer.ggml.token_type", Json::array().push(1)),
            "gguf metadata: field 'tokenizer.ggml.token_type': must have one entry for each of the 3 tokens, got 1");
  EXPECT_EQ(with("tokenizer.ggml.token_type", Json::array().push(1).push(9).push(1)),
            "gguf metadata: field 'tokenizer.ggml.token_type[1]': expected a type from 1 to 6, got 9");
  EXPECT_EQ(with("tokenizer.ggml.eos_token_id", 3),
            "gguf metadata: field 'tokenizer.ggml.eos_token_id': must be below the number of tokens 3, got 3");
  EXPECT_EQ(with("tokenizer.ggml.bos_token_id", -1),
            "gguf metadata: field 'tokenizer.ggml.bos_token_id': id must be in [0, 2^31), got -1");
  EXPECT_EQ(with("tokenizer.ggml.add_bos_token", true),
            "gguf metadata: field 'tokenizer.ggml.bos_token_id': is missing, but add_bos_token is true");
  EXPECT_EQ(with("tokenizer.ggml.model", "llama"), "gguf metadata: field 'tokenizer.ggml.scores': is missing");
  Json no_pre = Json::object();
  for (const auto& [key, value] : good.members())
    if (key != "tokenizer.ggml.pre") no_pre.set(key, value);
  EXPECT_EQ(error_of(no_pre), "gguf metadata: field 'tokenizer.ggml.pre': is missing");
  EXPECT_EQ(error_of(Json()), "gguf metadata: expected object, got null");
}

}  // namespace
}  // namespace strata::text
