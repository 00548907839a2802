// strata generate: continue a text, or answer one instruction.
#include <fstream>
#include <sstream>

#include "apps/commands.h"
#include "apps/common/common_flags.h"
#include "apps/common/human.h"
#include "apps/common/interrupt.h"
#include "apps/model_flags.h"
#include "apps/print.h"
#include "apps/sampling_flags.h"
#include "autograd/autograd.h"
#include "autograd/ops/copy.h"
#include "tensor/create.h"
#include "tensor/io/atomic_file.h"

namespace strata::apps {

namespace {

struct GenerateCommandOptions {
  CommonOptions common;
  ModelOptions model;
  SamplingFlags sampling;
  std::string prompt;
  std::filesystem::path prompt_file;
  std::filesystem::path logits;
  bool escape = false;
  bool chat = false;
  bool quiet = false;
};

// \n, \t, \r, \\, \" as in C; an unknown escape stays as it is.
std::string unescape(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    switch (text[++i]) {
      case 'n': out += '\n'; break;
      case 't': out += '\t'; break;
      case 'r': out += '\r'; break;
      case '\\': out += '\\'; break;
      case '"': out += '"'; break;
      default: out += '\\', out += text[i];
    }
  }
  return out;
}

std::string read_prompt(const GenerateCommandOptions& options) {
  if (options.prompt_file.empty()) return options.escape ? unescape(options.prompt) : options.prompt;
  std::ifstream in(options.prompt_file, std::ios::binary);
  check(in.good(), "{}: cannot open file", options.prompt_file.string());
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// {"ids": [...], "rows": [{"position": n - 1, "logits": [...]}]}: for comparing with other programs.
void write_logits(const std::filesystem::path& path, ReadyModel& ready, const std::vector<int32_t>& ids) {
  NoGrad off;
  Tensor hidden = ready.model().hidden(models::TokenBatch::from({ids}));  // [N, C]
  auto last = static_cast<int64_t>(ids.size()) - 1;
  Json list = Json::array(), values = Json::array();
  for (int32_t id : ids) list.push(id);
  for (float v : to_vector<float>(ready.model().head(narrow(hidden, 0, last, 1)))) values.push(static_cast<double>(v));
  Json row = Json::object().set("position", last).set("logits", values);
  write_file_atomically(path, Json::object().set("ids", list).set("rows", Json::array().push(row)).dump() + "\n");
}

void generate_text(const GenerateCommandOptions& options, const Invocation&) {
  ReadyModel ready = load_ready_model(options.model);
  for (const std::string& note : ready.notes) std::fputs(("note: " + note + "\n").c_str(), stderr);
  std::string prompt = read_prompt(options);
  std::vector<int32_t> ids;
  if (options.chat) {
    data::Conversation conversation{{{data::Role::user, prompt, ""}}, 0};
    ids = ready.form->prompt_ids(conversation);
  } else {
    ids = encode_prompt(ready.tokenizer(), prompt);
    if (auto bos = ready.tokenizer().bos(); ids.empty() && bos) ids.push_back(*bos);
    check<UsageError>(!ids.empty(), "--prompt: must not be empty for this model");
  }
  if (!options.logits.empty()) return write_logits(options.logits, ready, ids);
  if (!options.quiet && !options.chat) print_text(prompt);
  InterruptGuard guard("\n");
  text::StreamDecoder stream(ready.loaded.tokenizer);
  auto on_token = [&](int64_t, int32_t id) {
    print_text(stream.push(id));
    return !interrupted();
  };
  auto results = models::generate(ready.model(), {ids},
                                  generate_options(options.sampling, options.common.seed, ready.stop_ids), on_token);
  print_line(stream.flush());
  const models::Generation& g = results[0];
  if (options.quiet) return;
  auto rate = [](double tokens, double seconds) { return human_number(seconds > 0 ? tokens / seconds : 0); };
  std::fputs(fmt::format("[{} prompt tokens at {} tokens/s, {} new at {} tokens/s, finish: {}]\n", g.prompt_tokens,
                         rate(static_cast<double>(g.prompt_tokens), g.prefill_seconds), g.ids.size(),
                         rate(static_cast<double>(g.ids.size()), g.decode_seconds), g.finish_reason)
                 .c_str(),
             stderr);
}

}  // namespace

Command generate_command() {
  return make_command<GenerateCommandOptions>(
      {.name = "generate",
       .description = "continue a text with a language model",
       .examples = "{command} --model m.gguf --prompt \"Once upon a time\"\n"
                   "{command} --model m.gguf --adapter runs/.../adapter --chat --prompt \"Name three metals.\"\n"
                   "{command} --model m.gguf --prompt-file story.txt --temperature 0.8 --top-p 0.95 --seed 7"},
      [](Flags& flags, GenerateCommandOptions& o) {
        add_model_flags(flags, o.model, true);
        flags.section("prompt");
        flags.add("-p,--prompt", o.prompt, "text to continue, taken literally");
        flags.add("-f,--prompt-file", o.prompt_file, "file with the prompt, taken literally").existing();
        flags.add("--escape", o.escape, "read \\n, \\t, \\\\ in --prompt as in C");
        flags.add("--chat", o.chat, "the prompt is a user's message: put it into the model's template");
        flags.add("--logits", o.logits, "write the logits after the prompt to this JSON file instead of generating");
        flags.add("-q,--quiet", o.quiet, "print the new text only");
        add_sampling_flags(flags, o.sampling);
        add_common_flags(flags, o.common);
      },
      generate_text);
}

}  // namespace strata::apps
