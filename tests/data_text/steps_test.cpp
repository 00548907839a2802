// Single steps of a tokenizer.json against Hugging Face's own library (tests/golden/tokenizer_steps.py).
#include <map>

#include "data/text/decoder.h"
#include "data/text/normalize.h"
#include "data/text/pretokenize.h"
#include "data/text/unicode.h"
#include "tests/data_text/golden.h"

namespace strata::text {
namespace {

const Place kHere{"steps", "step"};

std::vector<Json> steps(const char* kind) {
  std::vector<Json> all = read_lines(std::string(STRATA_SOURCE_DIR) + "/tests/golden/tokenizer_steps.jsonl");
  std::erase_if(all, [&](const Json& r) { return !r.contains(kind); });
  return all;
}

TEST(TokenizerSteps, Normalizers) {
  auto records = steps("normalizer");
  EXPECT_EQ(records.size(), 247u);
  for (const Json& r : records)
    EXPECT_EQ(Normalizer::from_json(r.at("normalizer"), kHere).apply(r.get<std::string>("text")),
              r.get<std::string>("expected"))
        << r.dump();
}

TEST(TokenizerSteps, PreTokenizers) {
  auto records = steps("pre_tokenizer");
  EXPECT_EQ(records.size(), 686u);
  for (const Json& r : records) {
    Pieces pieces = PreTokenizer::from_json(r.at("pre_tokenizer"), kHere).apply(r.get<std::string>("text"), true);
    Json list = Json::array();
    for (const Piece& p : pieces.list) list.push(pieces.view(p));
    EXPECT_EQ(list, r.at("expected")) << r.dump() << "\n" << list.dump();
  }
}

TEST(TokenizerSteps, Decoders) {
  auto records = steps("decoder");
  EXPECT_EQ(records.size(), 77u);
  for (const Json& r : records) {
    Decoder decoder = Decoder::from_json(r.at("decoder"), kHere);
    std::string bytes;
    bool first = true;
    for (const Json& token : r.at("tokens").items()) {
      bytes += decoder.bytes(token.as_string(), false, first);
      first = false;
    }
    EXPECT_EQ(replace_invalid_utf8(bytes), r.get<std::string>("expected")) << r.dump();
  }
}

}  // namespace
}  // namespace strata::text
