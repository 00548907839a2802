#include "apps/common/terminal.h"

#include <sys/ioctl.h>

#include <cstdlib>
#include <string_view>

namespace strata::apps {

std::optional<int> terminal_columns(int descriptor) {
  if (isatty(descriptor) == 0) return std::nullopt;
  const char* kind = std::getenv("TERM");
  if (kind == nullptr || std::string_view(kind) == "dumb") return std::nullopt;
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace strata::apps
