// The folder in which a run leaves its evidence.
//
//   runs/2026-01-31-142530-finetune-lora-3f9a/
//     run.json        command line, config, seed, build, machine, start, end, status
//     metrics.jsonl   one line per step: {"step": 12, "loss": 2.31, ...}
//     samples/        texts generated on the way
//     checkpoints/    written by the trainer
//     report.html     written at the end
//
// run.json is replaced as a whole (temporary name, sync, rename), so that a reader never sees half of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/common/command.h"
#include "tensor/io/json.h"

namespace strata::apps {

enum class RunStatus { running, finished, interrupted, failed };

struct RunFolderOptions {
  std::filesystem::path out = {};  // empty: root/<date-time>-<command>-<short id>
  std::filesystem::path root = "runs";
  std::optional<uint64_t> seed = {};
  Json libraries = {};                       // {"openblas": "OpenBLAS 0.3.21 ..."}, as far as the caller knows
  std::optional<int64_t> resume_after = {};  // go on with the run in `out` after this step
};

class RunFolder {
 public:
  /// A new folder: throws UsageError if `out` exists and is not empty. With resume_after, an earlier run's folder:
  /// later lines of metrics.jsonl are dropped; throws UsageError if it holds no run or another process is writing to
  /// it.
  RunFolder(const Invocation& invocation, const RunFolderOptions& options);
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  /// Without finish(): the status becomes failed, or interrupted after Ctrl-C.
  ~RunFolder();

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path samples() const { return path_ / "samples"; }
  std::filesystem::path report() const { return path_ / "report.html"; }

  /// Appends {"step": step, metrics...} to metrics.jsonl and flushes it. Throws Error when the disk is full; the file
  /// then ends with the line before.
  void log(int64_t step, const Json& metrics);
  /// Writes samples/NAME.
  void sample(const std::string& name, std::string_view text) const;
  /// Sets a member of run.json ("gpu", "trainable_parameters", ...) and writes it.
  void set(const std::string& key, Json value);
  void finish(RunStatus status = RunStatus::finished);

 private:
  // An open file or folder, closed with its owner.
  struct Descriptor {
    int number = -1;
    ~Descriptor();
  };
  void start(const Invocation& invocation, const RunFolderOptions& options);
  void resume(const Invocation& invocation, int64_t step);
  void lock();
  void open_metrics();
  void write_run_json() const;

  std::filesystem::path path_;
  Json run_;
  Descriptor lock_, metrics_;
  int exceptions_at_start_;
  bool finished_ = false;
};

/// The lines of FOLDER/metrics.jsonl; a line cut off by a crash at the end is left out. Throws FormatError naming the
/// line for anything else that is not JSON with a "step".
std::vector<Json> read_metrics(const std::filesystem::path& folder);

/// Adds the error to the run.json of the run folder that was left by an exception, if there was one.
void record_failure(const std::string& error) noexcept;

}  // namespace strata::apps
