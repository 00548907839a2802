// Every command of the programs. To add one: write its .cpp with a function that returns a Command, declare the
// function here, and list it in commands.cpp (or in the group it belongs to).
#pragma once

#include <vector>

#include "apps/common/command.h"

namespace strata::apps {

Command chat_command();      // chat_command.cpp
Command evaluate_command();  // evaluate_command.cpp
Command finetune_command();  // finetune/lora_command.cpp
Command generate_command();  // generate_command.cpp
Command inspect_command();   // inspect_command.cpp
Command report_command();    // report_command.cpp

/// The commands of the umbrella program, in the order of --help.
std::vector<Command> all_commands();
/// `strata` itself.
Command strata_program();
/// `stage6-finetune`: the commands of `strata finetune`, and what goes with them.
Command stage6_program();

}  // namespace strata::apps
