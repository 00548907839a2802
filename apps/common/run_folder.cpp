#include "apps/common/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <exception>
#include <fstream>
#include <random>
#include <system_error>

#include "apps/common/build_info.h"
#include "apps/common/human.h"
#include "apps/common/interrupt.h"
#include "apps/common/machine.h"
#include "tensor/error.h"
#include "tensor/io/atomic_file.h"

namespace strata::apps {

namespace fs = std::filesystem;

namespace {

fs::path folder_left_by_exception;

std::string local_time(const char* format) {
  std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 64> text{};
  return {text.data(), std::strftime(text.data(), text.size(), format, &local)};
}
std::string timestamp() {
  return local_time("%Y-%m-%dT%H:%M:%S%z");
}

// "strata finetune lora" -> "finetune-lora".
std::string folder_name(const std::string& command) {
  std::string name = command.substr(std::min(command.find(' ') + 1, command.size()));
  std::replace(name.begin(), name.end(), ' ', '-');
  return fmt::format("{}-{}-{:04x}", local_time("%Y-%m-%d-%H%M%S"), name, std::random_device{}() & 0xffff);
}

// Folders are made one by one, so that an error names the one that failed.
void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  check(!error, "run folder: cannot create {}: {}", folder.string(), error.message());
}

Json build_json() {
  const BuildInfo& b = build_info();
  return Json::object()
      .set("version", b.version)
      .set("git_revision", b.git_revision.empty() ? Json() : Json(b.git_revision))
      .set("type", b.build_type)
      .set("compiler", b.compiler)
      .set("flags", b.flags)
      .set("cuda", b.cuda);
}

Json command_line_json(const Invocation& invocation) {
  Json line = Json::array();
  for (const std::string& argument : invocation.command_line) line.push(argument);
  return line;
}

const char* status_name(RunStatus status) {
  static constexpr std::array kNames{"running", "finished", "interrupted", "failed"};
  return kNames[static_cast<size_t>(status)];
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  check(in.good(), "{}: cannot open file", path.string());
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Calls use(line, step, parsed) for every complete line.
template <class Use>
void for_each_metric(const fs::path& file, Use use) {
  const std::string text = read_file(file);
  int number = 0;
  for (size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    std::string line = text.substr(begin, end - begin);
    Json json = Json::parse(line, fmt::format("{}:{}", file.string(), ++number));
    use(line, json.get<int64_t>("step"), json);
  }
}

}  // namespace

RunFolder::Descriptor::~Descriptor() {
  if (number >= 0) close(number);
}

RunFolder::RunFolder(const Invocation& invocation, const RunFolderOptions& options)
    : path_(options.out.empty() ? options.root / folder_name(invocation.command) : options.out),
      exceptions_at_start_(std::uncaught_exceptions()) {
  if (options.resume_after)
    resume(invocation, *options.resume_after);
  else
    start(invocation, options);
  make_folder(samples());
  make_folder(checkpoints());
  write_run_json();
  open_metrics();
}

void RunFolder::start(const Invocation& invocation, const RunFolderOptions& options) {
  check<UsageError>(!fs::exists(path_) || (fs::is_directory(path_) && fs::is_empty(path_)),
                    "--out: must be a new or empty folder, got {}; resume the run in it or choose another",
                    path_.string());
  make_folder(path_);
  lock();
  run_ = Json::object()
             .set("command", invocation.command)
             .set("command_line", command_line_json(invocation))
             .set("working_folder", fs::current_path().string())
             .set("status", status_name(RunStatus::running))
             .set("started", timestamp())
             .set("ended", Json())
             .set("seed", options.seed ? Json(static_cast<unsigned long>(*options.seed)) : Json())
             .set("config", invocation.config)
             .set("build", build_json())
             .set("machine", to_json(this_machine()))
             .set("libraries", options.libraries.is_null() ? Json::object() : options.libraries);
}

void RunFolder::resume(const Invocation& invocation, int64_t step) {
  check<UsageError>(fs::is_regular_file(path_ / "run.json"), "--resume: no run.json in {}", path_.string());
  lock();
  run_ = Json::parse_file(path_ / "run.json");
  const Json* earlier = run_.find("resumed");
  Json resumed = earlier ? *earlier : Json::array();
  resumed.push(Json::object()
                   .set("time", timestamp())
                   .set("step", static_cast<long>(step))
                   .set("command_line", command_line_json(invocation))
                   .set("git_revision", build_info().git_revision));
  run_.set("resumed", resumed).set("status", status_name(RunStatus::running)).set("ended", Json()).set("error", Json());
  const fs::path metrics = path_ / "metrics.jsonl";
  if (!fs::exists(metrics)) return;
  std::string kept;
  for_each_metric(metrics, [&](const std::string& line, int64_t at, const Json&) {
    if (at <= step) kept += line + '\n';
  });
  write_file_atomically(metrics, kept);
}

RunFolder::~RunFolder() {
  try {
    bool thrown = std::uncaught_exceptions() > exceptions_at_start_;
    if (!finished_) finish(interrupted() && !thrown ? RunStatus::interrupted : RunStatus::failed);
    if (thrown) folder_left_by_exception = path_;
  } catch (...) {  // the disk is full or gone: the status stays "running", which a reader takes for a crash
  }
}

// The lock ends with the process, however it ends.
void RunFolder::lock() {
  lock_.number = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  check(lock_.number >= 0, "run folder: cannot open {}: {}", path_.string(), std::generic_category().message(errno));
  bool free = flock(lock_.number, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;  // no locks there: go on without
  check<UsageError>(free, "run folder: another process is writing to {}", path_.string());
}

void RunFolder::open_metrics() {
  const fs::path file = path_ / "metrics.jsonl";
  metrics_.number = open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  check(metrics_.number >= 0, "run folder: cannot open {}: {}", file.string(), std::generic_category().message(errno));
}

void RunFolder::write_run_json() const {
  write_file_atomically(path_ / "run.json", valid_utf8(run_.dump(2)) + '\n');
}

void RunFolder::log(int64_t step, const Json& metrics) {
  Json line = Json::object().set("step", static_cast<long>(step));
  for (const auto& [key, value] : metrics.members()) line.set(key, value);
  const std::string text = valid_utf8(line.dump()) + '\n';
  const off_t end = lseek(metrics_.number, 0, SEEK_END);
  ssize_t n = write(metrics_.number, text.data(), text.size());
  if (n == static_cast<ssize_t>(text.size())) return;
  std::string reason = std::generic_category().message(n < 0 ? errno : ENOSPC);
  [[maybe_unused]] int cut = ftruncate(metrics_.number, end);
  fail("run folder: cannot append {} bytes to {}: {}", text.size(), (path_ / "metrics.jsonl").string(), reason);
}

void RunFolder::sample(const std::string& name, std::string_view text) const {
  write_file_atomically(samples() / name, text);
}

void RunFolder::set(const std::string& key, Json value) {
  run_.set(key, std::move(value));
  write_run_json();
}

void RunFolder::finish(RunStatus status) {
  finished_ = true;
  fsync(metrics_.number);
  run_.set("status", status_name(status)).set("ended", timestamp());
  write_run_json();
}

std::vector<Json> read_metrics(const fs::path& folder) {
  std::vector<Json> lines;
  for_each_metric(folder / "metrics.jsonl",
                  [&](const std::string&, int64_t, const Json& json) { lines.push_back(json); });
  return lines;
}

void record_failure(const std::string& error) noexcept {
  if (folder_left_by_exception.empty()) return;
  try {
    const fs::path file = folder_left_by_exception / "run.json";
    folder_left_by_exception.clear();
    write_file_atomically(file, Json::parse_file(file).set("error", valid_utf8(error)).dump(2) + '\n');
  } catch (...) {  // the error itself is on stderr already
  }
}

}  // namespace strata::apps
