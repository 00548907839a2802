#include "apps/commands.h"

namespace strata::apps {

std::vector<Command> all_commands() {
  return {report_command()};
}

Command strata_program() {
  CommandText text{.name = "strata",
                   .description = "fine-tune, run and measure language models on a CPU or one GPU",
                   .examples = "{command} report runs/*\n{command} help report\n{command} --version"};
  return make_group(std::move(text), all_commands());
}

}  // namespace strata::apps
