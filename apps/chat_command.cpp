// strata chat: talk to a model on the terminal; answers stream, the cache stays between turns.
#include <unistd.h>

#include <iostream>

#include "apps/commands.h"
#include "apps/common/common_flags.h"
#include "apps/common/interrupt.h"
#include "apps/model_flags.h"
#include "apps/print.h"
#include "apps/sampling_flags.h"

namespace strata::apps {

namespace {

struct ChatOptions {
  CommonOptions common;
  ModelOptions model;
  SamplingFlags sampling;
  int64_t context = 4096;
};

constexpr const char* kHelp =
    "/reset starts over, /undo takes the last question back, /base switches the adapter off or on, /exit ends. Ctrl-C "
    "stops an answer.";

class Chat {
 public:
  Chat(const ChatOptions& options, ReadyModel& ready)
      : options_(options), ready_(ready), session_(ready.model(), options.context) {}

  /// False at the end of the input or at /exit.
  bool turn() {
    if (isatty(STDIN_FILENO)) print_text("> ");
    std::string line;
    if (!std::getline(std::cin, line) || line == "/exit" || line == "/quit") return false;
    if (line.empty()) return true;
    if (line[0] == '/' && command(line)) return true;
    conversation_.turns.push_back({data::Role::user, line, ""});
    answer();
    return true;
  }

 private:
  bool command(const std::string& line) {
    auto& turns = conversation_.turns;
    if (line == "/reset") {
      turns.clear();
      session_.reset();
      print_line("(a new conversation)");
    } else if (line == "/undo") {
      while (!turns.empty() && turns.back().role == data::Role::assistant) turns.pop_back();
      if (!turns.empty()) turns.pop_back();
      print_line(turns.empty() ? "(nothing is left)" : "(taken back)");
    } else if (line == "/base") {
      adapter_on_ = !adapter_on_;
      models::enable_lora(ready_.model(), adapter_on_);
      session_.reset();  // keys and values of the other weights are of no use
      print_line(!ready_.adapter ? "(no adapter is loaded)"
                 : adapter_on_   ? "(adapter on)"
                                 : "(adapter off: the base model)");
    } else if (line == "/help") {
      print_line(kHelp);
    } else {
      return false;  // a message that begins with a slash
    }
    return true;
  }

  void answer() {
    clear_interrupt();
    std::string reply;
    text::StreamDecoder stream(ready_.loaded.tokenizer);
    auto on_token = [&](int64_t, int32_t id) {
      std::string piece = stream.push(id);
      reply += piece;
      print_text(piece);
      return !interrupted();
    };
    try {
      auto ids = ready_.form->prompt_ids(conversation_);
      session_.generate(ids, generate_options(options_.sampling, options_.common.seed + seed_step_++, ready_.stop_ids),
                        on_token);
    } catch (const Error& e) {
      print_line(fmt::format("error: {}\n(/undo takes the message back, /reset starts over)", e.what()));
      return;
    }
    std::string rest = stream.flush();
    print_line(rest);
    conversation_.turns.push_back({data::Role::assistant, reply + rest, ""});
  }

  const ChatOptions& options_;
  ReadyModel& ready_;
  models::Session session_;
  data::Conversation conversation_;
  bool adapter_on_ = true;
  uint64_t seed_step_ = 0;
};

void chat(const ChatOptions& options, const Invocation&) {
  ReadyModel ready = load_ready_model(options.model);
  for (const std::string& note : ready.notes) print_line("note: " + note);
  print_line(describe_model(ready));
  print_line(fmt::format("template {} ({}). {}", ready.form->name(), ready.template_reason, kHelp));
  InterruptGuard guard("\n");
  Chat chat(options, ready);
  while (chat.turn()) {
  }
}

}  // namespace

Command chat_command() {
  return make_command<ChatOptions>(
      {.name = "chat",
       .description = "talk to a language model on the terminal",
       .examples = "{command} --model SmolLM2-135M-Instruct.Q4_1.gguf\n"
                   "{command} --model m.gguf --adapter runs/.../adapter --temperature 0.7 --top-p 0.9"},
      [](Flags& flags, ChatOptions& o) {
        add_model_flags(flags, o.model, true);
        flags.add("--context", o.context, "tokens a conversation may have").at_least(16);
        add_sampling_flags(flags, o.sampling);
        add_common_flags(flags, o.common);
      },
      chat);
}

}  // namespace strata::apps
