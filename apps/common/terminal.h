// What a file descriptor is connected to.
#pragma once

#include <unistd.h>

#include <optional>

namespace strata::apps {

/// Columns of the terminal behind the descriptor; nullopt if it is none, or one that cannot move its cursor
/// (TERM=dumb).
std::optional<int> terminal_columns(int descriptor);

}  // namespace strata::apps
