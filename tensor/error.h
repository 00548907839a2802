// Errors of the library. Text: "<op>: <what must hold>, got <values>", lower case, a hint when the fix is known.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace strata {

/// Everything the library throws derives from Error. A caller shows what() and stops the operation.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A file does not hold what its format promises. The text names file, offset and/or field.
class FormatError : public Error {
 public:
  using Error::Error;
};

/// An allocation failed; the text carries the memory ledger's table.
class OutOfMemory : public Error {
 public:
  using Error::Error;
};

/// The caller asked for something contradictory or unknown (wrong flag, wrong option): exit code 2 in programs.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// Throws E with a formatted text.
template <class E = Error, class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
  throw E(fmt::format(text, std::forward<Args>(args)...));
}

/// Throws E unless `ok`. For conditions a user can violate; assert() is for our own invariants.
template <class E = Error, class... Args>
void check(bool ok, fmt::format_string<Args...> text, Args&&... args) {
  if (!ok) fail<E>(text, std::forward<Args>(args)...);
}

}  // namespace strata
