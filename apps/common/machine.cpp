#include "apps/common/machine.h"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <set>

namespace strata::apps {

namespace {

// The text after "key" and a separator in a file of "key: value" or "KEY=value" lines; "" if there is none.
std::string value_of(const std::string& line, const std::string& key) {
  if (line.compare(0, key.size(), key) != 0) return "";
  size_t begin = line.find_first_not_of(" \t:=\"", key.size());
  if (begin == std::string::npos || begin == key.size()) return "";
  std::string value = line.substr(begin);
  value.erase(value.find_last_not_of(" \t\"") + 1);
  return value;
}

void read_cpu(Machine& machine) {
  std::ifstream in("/proc/cpuinfo");
  std::set<std::pair<std::string, std::string>> cores;  // (socket, core)
  std::string socket;
  for (std::string line; std::getline(in, line);) {
    if (machine.cpu.empty()) machine.cpu = value_of(line, "model name");
    if (std::string id = value_of(line, "physical id"); !id.empty()) socket = id;
    if (std::string id = value_of(line, "core id"); !id.empty()) cores.emplace(socket, id);
  }
  machine.physical_cores = static_cast<int>(cores.size());
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) machine.logical_cores = CPU_COUNT(&allowed);
}

uint64_t memory_limit(const char* file) {
  std::ifstream in(file);
  std::string text;
  uint64_t bytes = UINT64_MAX;
  if (in >> text) std::from_chars(text.data(), text.data() + text.size(), bytes);  // "max": no limit
  return bytes;
}

void read_memory(Machine& machine) {
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) machine.memory = static_cast<uint64_t>(pages) * static_cast<uint64_t>(page);
  machine.memory = std::min({machine.memory, memory_limit("/sys/fs/cgroup/memory.max"),
                             memory_limit("/sys/fs/cgroup/memory/memory.limit_in_bytes")});
}

void read_system(Machine& machine) {
  std::ifstream in("/etc/os-release");
  for (std::string line; std::getline(in, line);)
    if (std::string name = value_of(line, "PRETTY_NAME"); !name.empty()) machine.system = name;
  utsname kernel{};
  if (uname(&kernel) == 0)
    machine.system += (machine.system.empty() ? "" : ", ") + std::string(kernel.sysname) + " " + kernel.release;
}

}  // namespace

Machine this_machine() {
  Machine machine;
  read_cpu(machine);
  read_memory(machine);
  read_system(machine);
  return machine;
}

Json to_json(const Machine& machine) {
  return Json::object()
      .set("cpu", machine.cpu)
      .set("logical_cores", machine.logical_cores)
      .set("physical_cores", machine.physical_cores)
      .set("memory_bytes", machine.memory)
      .set("system", machine.system);
}

}  // namespace strata::apps
