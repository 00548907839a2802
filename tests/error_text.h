// The text of the Error that f throws; "no error" if it throws none.
#pragma once

#include <functional>
#include <string>

#include "tensor/error.h"

namespace strata {

inline std::string error_text(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace strata
