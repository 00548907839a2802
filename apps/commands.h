// Every command of the programs. To add one: write its .cpp with a function that returns a Command, declare the
// function here, and list it in commands.cpp (or in the group it belongs to).
#pragma once

#include <vector>

#include "apps/common/command.h"

namespace strata::apps {

Command report_command();  // report_command.cpp

/// The commands of the umbrella program, in the order of --help.
std::vector<Command> all_commands();
/// `strata` itself.
Command strata_program();

}  // namespace strata::apps
