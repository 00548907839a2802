#include "data/instruct/template.h"

#include <algorithm>
#include <utility>

#include "tensor/error.h"

namespace strata::data {

namespace {

constexpr const char* kSpace = " \t\r\n\f\v";

std::string_view trimmed(std::string_view text) {
  size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

/// Every list of marks of a spec, in a fixed order.
template <class Spec, class F>
void for_each_marks(Spec& spec, F&& f) {
  for (auto* marks : {&spec.start, &spec.start_with_input, &spec.system_before, &spec.system_after, &spec.user_before,
                      &spec.user_after, &spec.input_before, &spec.assistant_before, &spec.end_of_turn,
                      &spec.assistant_after, &spec.between})
    f(*marks);
}

/// Whether white space after this special token disappears when a text is encoded (an added token with "rstrip", as
/// Phi-3 has): then the template's newline after it must not become a token either.
bool swallows_space(const Tokenizer& tokenizer, const std::string& special) {
  text::EncodeOptions parse{.add_special = false, .parse_special = true};
  return tokenizer.encode(special + "\na", parse) == tokenizer.encode(special + "a", parse);
}

uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace

/// Builds the list of segments.
class Template::Writer {
 public:
  explicit Writer(const Template& form) : form_(form) {}

  void marks(const Marks& list, bool counted = false) {
    for (const Mark& mark : list) mark.special ? special(mark.text, counted) : text(mark.text, counted);
  }
  void content(std::string_view t) { text(form_.spec_.trim ? trimmed(t) : t, false); }
  void answer_header() {
    marks(form_.spec_.assistant_before);
    if (form_.answer_space_ && segments_.back().text.ends_with(' ')) {
      segments_.back().text.pop_back();
      if (segments_.back().text.empty()) segments_.pop_back();
    }
    new_piece_ = true;
  }
  void answer(std::string_view t) {
    text(form_.spec_.trim ? trimmed(t) : t, true);
    new_piece_ = true;
  }
  std::vector<Segment> take() { return std::move(segments_); }

 private:
  void special(const std::string& token, bool counted) {
    segments_.push_back({token, true, counted});
    new_piece_ = false;
  }
  void text(std::string_view t, bool counted) {
    if (!counted && after_swallowing_token()) t.remove_prefix(std::min(t.find_first_not_of(kSpace), t.size()));
    if (t.empty()) return;
    bool joins = !segments_.empty() && !segments_.back().special && !new_piece_;
    if (joins)
      segments_.back().text += t;
    else
      segments_.push_back({std::string(t), false, counted});
    new_piece_ = false;
  }

  bool after_swallowing_token() const {
    return !segments_.empty() && segments_.back().special && form_.swallowing_.contains(segments_.back().text);
  }

  const Template& form_;
  bool new_piece_ = false;
  std::vector<Segment> segments_;
};

Template::Template(TemplateSpec spec, std::shared_ptr<const Tokenizer> tokenizer, TemplateOptions options)
    : spec_(std::move(spec)), tokenizer_(std::move(tokenizer)), options_(std::move(options)) {
  resolve();
}

void Template::resolve() {
  auto own_token = [&](std::optional<TokenId> id, const char* what) {
    check<UsageError>(id.has_value(), "template {}: needs the tokenizer's {} token, which this tokenizer does not name",
                      spec_.name, what);
    return tokenizer_->token_text(*id);
  };
  using Bos = TemplateSpec::Bos;
  if (spec_.bos == Bos::always || (spec_.bos == Bos::if_tokenizer_adds && tokenizer_->adds_bos())) {
    for (Marks* start : {&spec_.start, &spec_.start_with_input})
      if (start == &spec_.start || !start->empty()) start->insert(start->begin(), {kBos, true});
  }
  for_each_marks(spec_, [&](Marks& marks) {
    for (Mark& mark : marks) {
      if (!mark.special) continue;
      if (mark.text == kBos) mark.text = own_token(tokenizer_->bos(), "BOS");
      if (mark.text == kEos) mark.text = own_token(tokenizer_->eos(), "EOS");
      check<UsageError>(tokenizer_->token_id(mark.text).has_value(),
                        "template {}: needs the special token '{}', which this tokenizer does not have; another "
                        "template may fit (alpaca needs none)",
                        spec_.name, mark.text);
      if (swallows_space(*tokenizer_, mark.text)) swallowing_.insert(mark.text);
    }
  });
  probe_spaces();
}

void Template::probe_spaces() {
  auto spaced = [&](TokenId id) { return tokenizer_->token_bytes(id).starts_with(' '); };
  std::vector<TokenId> probe = tokenizer_->encode("a");
  leading_space_ = !probe.empty() && spaced(probe[0]);
  const Marks& header = spec_.assistant_before;
  answer_space_ = leading_space_ && !header.empty() && !header.back().special && header.back().text.ends_with(' ');
  for_each_marks(spec_, [&](const Marks& marks) {
    for (const Mark& mark : marks) {
      if (!mark.special) continue;
      probe = tokenizer_->encode(mark.text + "a", {.add_special = false, .parse_special = true});
      if (probe.size() > 1) space_after_special_ = spaced(probe[1]);
    }
  });
}

std::vector<Segment> Template::render_turns(const std::vector<Turn>& turns, bool generation_prompt) const {
  Writer out(*this);
  std::string system = options_.system_message.value_or("");
  size_t first = 0;
  if (!turns.empty() && turns[0].role == Role::system) system = turns[first++].content;
  bool own_turn = spec_.system == TemplateSpec::System::own_turn && !spec_.system_replaces_start;
  bool system_pending = !system.empty() || (first > 0 && own_turn);  // an empty system turn is still a turn
  auto write_system = [&] {
    out.marks(spec_.system_before);
    out.content(system);
    out.marks(spec_.system_after);
    system_pending = false;
  };

  bool with_input = first < turns.size() && !turns[first].input.empty() && !spec_.start_with_input.empty();
  const Marks& start = with_input ? spec_.start_with_input : spec_.start;
  if (system_pending && spec_.system_replaces_start)
    out.marks(Marks(start.begin(), std::find_if(start.begin(), start.end(), [](const Mark& m) { return !m.special; })));
  else
    out.marks(start);
  if (system_pending && spec_.system == TemplateSpec::System::own_turn) write_system();

  for (size_t i = first; i < turns.size(); ++i) {
    const Turn& turn = turns[i];
    if (turn.role == Role::assistant) {
      out.answer_header();
      out.answer(turn.content);
      out.marks(spec_.end_of_turn, true);
      out.marks(spec_.assistant_after);
      if (i + 1 < turns.size() || generation_prompt) out.marks(spec_.between);
    } else {
      out.marks(spec_.user_before);
      if (system_pending) write_system();
      out.content(turn.content);
      if (!turn.input.empty()) {
        if (!turn.content.empty()) out.marks(spec_.input_before);
        out.content(turn.input);
      }
      out.marks(spec_.user_after);
    }
  }
  if (generation_prompt) out.answer_header();
  return out.take();
}

void Template::check_order(const Conversation& conversation) const {
  Role expected = Role::user;
  for (size_t i = 0; i < conversation.turns.size(); ++i) {
    Role role = conversation.turns[i].role;
    if (role == Role::system) {
      check<FormatError>(i == 0, "template {}: a system turn must be the first, got turn {}", spec_.name, i);
      continue;
    }
    if (!spec_.alternating) continue;
    check<FormatError>(role == expected, "template {}: turns must alternate user and assistant, got {} as turn {}",
                       spec_.name, role_name(role), i);
    expected = role == Role::user ? Role::assistant : Role::user;
  }
}

std::vector<Segment> Template::render(const Conversation& conversation, bool generation_prompt) const {
  check_order(conversation);
  return render_turns(conversation.turns, generation_prompt);
}

std::string Template::render_text(const Conversation& conversation, bool generation_prompt) const {
  std::string text;
  bool counted = false;
  for (const Segment& segment : render(conversation, generation_prompt)) {
    if (answer_space_ && segment.counted && !counted) text += ' ';
    counted = segment.counted;
    text += segment.text;
  }
  return text;
}

std::vector<TokenId> Template::encode_after_text(const std::string& text) const {
  // What follows text gets no space of its own: encode it after a newline, which merges with nothing in these
  // vocabularies, and take the newline away again.
  std::vector<TokenId> anchor = tokenizer_->encode("\n"), ids = tokenizer_->encode("\n" + text);
  if (ids.size() < anchor.size() || !std::equal(anchor.begin(), anchor.end(), ids.begin()))
    return tokenizer_->encode(text);
  ids.erase(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(anchor.size()));
  return ids;
}

std::vector<TokenId> Template::encode_text(const Segment& segment, const Segment* before) const {
  // A space that the template writes at the start of a text and one that the tokenizer puts there are the same one.
  bool answer_with_space = segment.counted && answer_space_;
  if (!leading_space_ || !before || answer_with_space) return tokenizer_->encode(segment.text);
  if (before->special && segment.text.starts_with(' ')) return tokenizer_->encode(segment.text.substr(1));
  if (before->special && space_after_special_) return tokenizer_->encode(segment.text);
  return encode_after_text(segment.text);
}

Template::Encoded Template::encode(const std::vector<Segment>& segments) const {
  Encoded out;
  const Segment* before = nullptr;
  for (const Segment& segment : segments) {
    if (segment.special) {
      std::optional<TokenId> id = tokenizer_->token_id(segment.text);
      check<UsageError>(id.has_value(), "template {}: '{}' is no token of this tokenizer", spec_.name, segment.text);
      out.ids.push_back(*id);
    } else {
      std::vector<TokenId> ids = encode_text(segment, before);
      out.ids.insert(out.ids.end(), ids.begin(), ids.end());
    }
    out.counted.resize(out.ids.size(), segment.counted);
    before = &segment;
  }
  return out;
}

std::vector<TokenId> Template::prompt_ids(const Conversation& conversation) const {
  check_order(conversation);
  std::vector<Turn> turns = conversation.turns;
  if (!turns.empty() && turns.back().role == Role::assistant) turns.pop_back();
  return encode(render_turns(turns, true)).ids;
}

std::vector<TokenId> Template::stop_ids() const {
  std::vector<TokenId> ids;
  if (!spec_.end_of_turn.empty() && spec_.end_of_turn[0].special)
    ids.push_back(*tokenizer_->token_id(spec_.end_of_turn[0].text));
  if (std::optional<TokenId> eos = tokenizer_->eos(); eos && std::find(ids.begin(), ids.end(), *eos) == ids.end())
    ids.push_back(*eos);
  return ids;
}

std::string Template::hash() const {
  std::string all = fmt::format("{} {} {}\n", static_cast<int>(spec_.system), spec_.system_replaces_start, spec_.trim);
  for_each_marks(spec_, [&](const Marks& marks) {
    for (const Mark& mark : marks) all += fmt::format("{} {}:{}\n", mark.special, mark.text.size(), mark.text);
    all += "--\n";
  });
  all += options_.system_message.value_or("");
  return fmt::format("{:016x}", fnv1a(all));
}

}  // namespace strata::data
