#include "apps/commands.h"

namespace strata::apps {

std::vector<Command> all_commands() {
  return {finetune_command(), generate_command(), chat_command(),
          evaluate_command(), inspect_command(),  report_command()};
}

Command strata_program() {
  CommandText text{.name = "strata",
                   .description = "fine-tune, run and measure language models on a CPU or one GPU",
                   .examples =
                       "{command} finetune lora --model m.gguf --data records.json\n{command} chat --model m.gguf "
                       "--adapter runs/.../adapter\n{command} help finetune lora\n{command} --version"};
  return make_group(std::move(text), all_commands());
}

Command stage6_program() {
  std::vector<Command> commands = finetune_command().commands;
  for (const Command& c : {evaluate_command(), chat_command()}) commands.push_back(c);
  CommandText text{
      .name = "stage6-finetune",
      .description = "stage 6: from a checkpoint and instruction records to an adapter that is proven better",
      .examples = "{command} lora --model m.gguf --data records.json\n{command} chat --model m.gguf"};
  return make_group(std::move(text), std::move(commands));
}

}  // namespace strata::apps
