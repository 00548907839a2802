// The text of the Error that f throws, for tests that compare it.
#pragma once

#include <string>

#include "tensor/error.h"

namespace strata {

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace strata
