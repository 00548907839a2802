// Results go to stdout, line by line.
#pragma once

#include <cstdio>
#include <string>

namespace strata::apps {

inline void print_text(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}
inline void print_line(const std::string& line) {
  print_text(line + "\n");
}

}  // namespace strata::apps
