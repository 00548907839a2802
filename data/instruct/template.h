// Prompt templates: a conversation -> spans of text -> token ids, with the loss mask known from the spans.
//
// Every span says whether it is template markup or somebody's text, and whether the loss counts it. Text between two
// special tokens is tokenised as one piece, except that a piece always ends where an answer begins: so a training
// record starts with exactly the ids that generation feeds for the same prompt, and no mask is ever found by
// searching for ids. Somebody's text is encoded with parse_special off: nobody can close their own turn.
//
// counted = answer + end-of-turn token. What a template writes after the end-of-turn token is input, not counted.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "data/instruct/records.h"
#include "data/text/tokenizer.h"

namespace strata::data {

using text::TokenId;
using text::Tokenizer;

/// A stretch of a rendered conversation. `special`: one special token, spelled out; otherwise plain text.
struct Segment {
  std::string text;
  bool special = false;
  bool counted = false;
  friend bool operator==(const Segment&, const Segment&) = default;
};

/// Template markup: plain text or a special token. The tokenizer's own BOS and EOS are written kBos and kEos.
struct Mark {
  std::string text;
  bool special = false;
  friend bool operator==(const Mark&, const Mark&) = default;
};
using Marks = std::vector<Mark>;
inline constexpr const char* kBos = "{bos}";
inline constexpr const char* kEos = "{eos}";

/// A template as data. A conversation is BOS, start, turns; a turn is before + text + after; an assistant turn is
/// before + answer + end_of_turn + after, of which answer and end_of_turn are counted.
struct TemplateSpec {
  enum class System { own_turn, in_first_user };
  enum class Bos { never, always, if_tokenizer_adds };

  std::string name = {};
  Bos bos = Bos::never;
  Marks start = {};             // once (the Alpaca preamble)
  Marks start_with_input = {};  // instead of start where the first user turn has an input
  System system = System::own_turn;
  bool system_replaces_start = false;
  Marks system_before = {}, system_after = {};
  Marks user_before = {}, user_after = {};
  Marks input_before = {{"\n\n"}};  // between an instruction and its input
  Marks assistant_before = {};      // the generation header; a space at its very end belongs to the answer's first word
  Marks end_of_turn = {};           // counted
  Marks assistant_after = {};       // not counted
  Marks between = {};               // after an assistant turn that is not the last turn
  bool trim = false;                // strips white space around each text, as the published template does
  bool alternating = false;         // user and assistant must take turns, user first
};

struct TemplateOptions {
  /// Used for conversations that have no system turn of their own.
  std::optional<std::string> system_message;
};

class Template {
 public:
  /// UsageError if the tokenizer lacks a special token that the template needs.
  Template(TemplateSpec spec, std::shared_ptr<const Tokenizer> tokenizer, TemplateOptions options = {});
  /// A built-in template; UsageError listing names() for an unknown name.
  static Template named(std::string_view name, std::shared_ptr<const Tokenizer> tokenizer,
                        TemplateOptions options = {});
  static std::vector<std::string> names();

  const std::string& name() const { return spec_.name; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }

  /// The spans of a conversation; with generation_prompt the header of the next answer follows. Neighbouring plain
  /// text is one span, except that an answer starts its own. FormatError if the conversation does not fit the template
  /// (turns that do not alternate). Where the tokenizer itself puts a space before a text (SentencePiece), the space
  /// that the template writes before an answer is left to it.
  std::vector<Segment> render(const Conversation& conversation, bool generation_prompt = false) const;
  /// The same as one text, as a chat template gives it. Encoding it whole gives the same ids where no content spells
  /// a special token and no answer merges with the prompt's last token.
  std::string render_text(const Conversation& conversation, bool generation_prompt = false) const;

  struct Encoded {
    std::vector<TokenId> ids;
    std::vector<uint8_t> counted;  // as long as ids: 1 where the loss counts the token
  };
  Encoded encode(const std::vector<Segment>& segments) const;
  Encoded encode(const Conversation& conversation) const { return encode(render(conversation)); }

  /// What generation feeds: everything before the last turn's answer if that turn is the assistant's, else the whole
  /// conversation; then the generation header. encode(conversation).ids begins with exactly these ids.
  std::vector<TokenId> prompt_ids(const Conversation& conversation) const;

  /// Ids after which generation stops: the template's end of turn and the tokenizer's EOS.
  std::vector<TokenId> stop_ids() const;

  /// 16 hex digits over everything that shapes the ids: markup, white-space rules, default system message. The same
  /// on every machine; an adapter stores it so that serving with another template is noticed.
  std::string hash() const;

 private:
  class Writer;
  void resolve();
  void probe_spaces();
  void check_order(const Conversation& conversation) const;
  std::vector<Segment> render_turns(const std::vector<Turn>& turns, bool generation_prompt) const;
  std::vector<TokenId> encode_after_text(const std::string& text) const;
  std::vector<TokenId> encode_text(const Segment& segment, const Segment* before) const;

  TemplateSpec spec_;  // with the tokenizer's own tokens in the place of kBos and kEos
  std::shared_ptr<const Tokenizer> tokenizer_;
  TemplateOptions options_;
  std::set<std::string> swallowing_;  // special tokens that take the white space after them away (Phi-3)
  // What the tokenizer does to texts by itself (SentencePiece vocabularies), found by trying:
  bool leading_space_ = false;        // it puts a space before a text,
  bool space_after_special_ = false;  // also after a special token (the form that Llama 2 has),
  bool answer_space_ = false;         // which stands for the space that the template writes before an answer
};

struct TemplateChoice {
  std::string name;
  std::string reason;
};
/// The template that the model's files point to: by the markers in its chat template, else by its special tokens,
/// else alpaca.
TemplateChoice detect_template(const Tokenizer& tokenizer);

}  // namespace strata::data
