#include "optim/training/checkpoint.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "tensor/io/atomic_file.h"
#include "tensor/io/safetensors.h"

namespace strata::optim {

namespace fs = std::filesystem;

namespace {

constexpr const char* kTensors = "tensors.safetensors";
constexpr const char* kState = "state.json";
constexpr const char* kTemporary = ".tmp";

uint32_t crc_of_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  check(in.good(), "{}: cannot open file", path.string());
  std::vector<char> buffer(1 << 20);
  uLong crc = crc32(0, nullptr, 0);
  while (in) {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    crc = crc32(crc, reinterpret_cast<const Bytef*>(buffer.data()), static_cast<uInt>(in.gcount()));
  }
  return static_cast<uint32_t>(crc);
}

// Only complete checkpoints carry the plain name; -1 for anything else.
int64_t step_of(const fs::path& folder) {
  std::string name = folder.filename().string();
  if (!name.starts_with("step-") || name.size() != 13) return -1;
  int64_t step = 0;
  for (char c : name.substr(5)) {
    if (c < '0' || c > '9') return -1;
    step = step * 10 + (c - '0');
  }
  return step;
}

std::vector<std::pair<int64_t, fs::path>> complete_folders(const fs::path& root) {
  std::vector<std::pair<int64_t, fs::path>> found;
  if (!fs::is_directory(root)) return found;
  for (const auto& entry : fs::directory_iterator(root))
    if (int64_t step = step_of(entry.path()); step >= 0 && entry.is_directory()) found.emplace_back(step, entry.path());
  std::sort(found.rbegin(), found.rend());  // newest first
  return found;
}

void sync_folder(const fs::path& folder) {
  int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

Checkpoint read(const fs::path& folder, int64_t step) {
  Checkpoint c;
  c.step = step;
  c.folder = folder;
  Json file = Json::parse_file(folder / kState);
  uint32_t crc = crc_of_file(folder / kTensors);
  check<FormatError>(file.get<int64_t>("crc32") == crc, "{}: checksum differs; the file is damaged",
                     (folder / kTensors).string());
  check<FormatError>(file.get<int64_t>("step") == step, "{}: field 'step' must be {}", (folder / kState).string(),
                     step);
  c.state = file.at("state");
  SafetensorsFile tensors = SafetensorsFile::open(folder / kTensors);
  for (const TensorInfo& t : tensors.tensors()) c.tensors.push_back({t.name, tensors.tensor(t.name)});
  return c;
}

}  // namespace

void save_checkpoint(const fs::path& root, int64_t step, const std::vector<nn::NamedTensor>& tensors, const Json& state,
                     int keep) {
  check(step >= 0 && step <= 99999999, "checkpoint: step must be between 0 and 99999999, got {}", step);
  fs::create_directories(root);
  fs::path done = root / fmt::format("step-{:08d}", step);
  fs::path temporary = done;
  temporary += kTemporary;
  fs::remove_all(temporary);
  try {
    fs::create_directory(temporary);
    std::vector<std::pair<std::string, Tensor>> named;
    for (const auto& t : tensors) named.emplace_back(t.name, t.tensor);
    save_safetensors(temporary / kTensors, named);
    Json file = Json::object();
    file.set("step", step).set("crc32", static_cast<int64_t>(crc_of_file(temporary / kTensors))).set("state", state);
    write_file_atomically(temporary / kState, file.dump(1) + "\n");
    sync_folder(temporary);
    if (fs::exists(done)) {  // the same step again, after a resume: swap, so that one of the two is always there
      check(::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, done.c_str(), RENAME_EXCHANGE) == 0,
            "{}: cannot replace the checkpoint: {}", done.string(), std::strerror(errno));
      fs::remove_all(temporary);
    } else {
      fs::rename(temporary, done);
    }
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(temporary, ignored);
    throw;
  }
  sync_folder(root);
  auto all = complete_folders(root);
  for (size_t i = static_cast<size_t>(std::max(keep, 1)); i < all.size(); ++i) fs::remove_all(all[i].second);
}

std::optional<Checkpoint> load_newest_checkpoint(const fs::path& root) {
  std::vector<std::string> skipped;
  for (const auto& [step, folder] : complete_folders(root)) {
    try {
      Checkpoint c = read(folder, step);
      c.skipped = std::move(skipped);
      return c;
    } catch (const Error& e) {
      skipped.push_back(folder.filename().string() + ": " + e.what());
    }
  }
  check(skipped.empty(), "{}: no checkpoint is usable: {}", root.string(), fmt::join(skipped, "; "));
  return std::nullopt;
}

void remove_temporary_checkpoints(const fs::path& root) {
  if (!fs::is_directory(root)) return;
  std::vector<fs::path> leftovers;
  for (const auto& entry : fs::directory_iterator(root))
    if (entry.path().extension() == kTemporary) leftovers.push_back(entry.path());
  for (const fs::path& path : leftovers) fs::remove_all(path);
}

}  // namespace strata::optim
