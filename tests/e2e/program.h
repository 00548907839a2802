// Runs the programs as a user would and looks at what they print, their exit code and the files they leave.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace strata::test {

namespace fs = std::filesystem;

struct Outcome {
  int exit_code = -1;  // 128 + signal if killed
  std::string output;  // stdout and stderr together
};

inline Outcome run(const std::string& command) {
  Outcome outcome;
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  std::array<char, 4096> buffer;
  while (size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) outcome.output.append(buffer.data(), n);
  int status = pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

inline Outcome strata(const std::string& arguments) {
  return run(std::string(STRATA_PROGRAM) + " " + arguments);
}

inline std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

inline void write_file(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

/// A folder of the test's own, removed at the end.
struct Scratch {
  fs::path path = fs::temp_directory_path() / ("strata-e2e-" + std::to_string(::getpid()));
  Scratch() { fs::remove_all(path), fs::create_directories(path); }
  ~Scratch() { fs::remove_all(path); }
  std::string operator/(const std::string& name) const { return (path / name).string(); }
};

inline std::string stories() {
  return std::string(STRATA_TEST_DATA) + "/stories260K";
}
inline std::string instructions() {
  return std::string(STRATA_TEST_DATA) + "/instruct/instruction-data.json";
}

}  // namespace strata::test
