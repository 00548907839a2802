#include "apps/commands.h"

namespace strata::apps {

std::vector<Command> all_commands() {
  return {};
}

Command strata_program() {
  CommandText text{.name = "strata",
                   .description = "fine-tune, run and measure language models on a CPU or one GPU",
                   .examples = "{command} --version"};
  return make_group(std::move(text), all_commands());
}

}  // namespace strata::apps
