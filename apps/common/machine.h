// The machine a run was measured on: a figure without it says nothing.
#pragma once

#include <cstdint>
#include <string>

#include "tensor/io/json.h"

namespace strata::apps {

struct Machine {
  std::string cpu;         // "Intel(R) Xeon(R) ...", "" if unknown
  int logical_cores = 0;   // that this process may use
  int physical_cores = 0;  // of the machine; 0 if unknown
  uint64_t memory = 0;     // bytes of the machine, or of the container if that is less
  std::string system;      // "Debian GNU/Linux 12 (bookworm), Linux 6.1.0"
};

/// Reads /proc, /etc/os-release and the container's limits; what cannot be read stays empty.
Machine this_machine();
Json to_json(const Machine& machine);

}  // namespace strata::apps
