// The sources of this checkout, as text.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace strata::lint {

struct SourceFile {
  std::string path;                // "tensor/io/json.cpp"
  std::string folder;              // "tensor"
  std::vector<std::string> lines;  // without line ends

  std::filesystem::path extension() const { return std::filesystem::path(path).extension(); }
};

inline const std::vector<std::string>& library_folders() {
  static const std::vector<std::string> folders{"tensor", "autograd", "nn", "optim", "data", "models"};
  return folders;
}

/// The library and the kernels that will fill its slots on another device.
inline bool is_library(const SourceFile& file) {
  const auto& folders = library_folders();
  return file.folder == "cuda" || std::find(folders.begin(), folders.end(), file.folder) != folders.end();
}

inline SourceFile read_source(const std::filesystem::path& root, const std::filesystem::path& path) {
  SourceFile file{std::filesystem::relative(path, root).generic_string(), "", {}};
  file.folder = file.path.substr(0, file.path.find('/'));
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) file.lines.push_back(line);
  return file;
}

/// Every .h, .cpp, .cu and .cuh under the folders of the project (not third_party), sorted by path.
inline std::vector<SourceFile> source_tree() {
  const std::filesystem::path root = STRATA_SOURCE_DIR;
  std::vector<std::string> folders = library_folders();
  folders.insert(folders.end(), {"cuda", "apps", "tests", "bench"});
  std::vector<SourceFile> files;
  for (const std::string& folder : folders) {
    if (!std::filesystem::exists(root / folder)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      std::string extension = entry.path().extension();
      if (extension == ".h" || extension == ".cpp" || extension == ".cu" || extension == ".cuh")
        files.push_back(read_source(root, entry.path()));
    }
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

/// "path:line: text" of every line for which wrong(file, line) is true.
template <class F>
std::vector<std::string> lines_where(F&& wrong) {
  std::vector<std::string> places;
  for (const SourceFile& file : source_tree())
    for (size_t i = 0; i < file.lines.size(); ++i)
      if (wrong(file, file.lines[i])) places.push_back(file.path + ":" + std::to_string(i + 1) + ": " + file.lines[i]);
  return places;
}

/// The path of every file for which wrong(file) is true.
template <class F>
std::vector<std::string> files_where(F&& wrong) {
  std::vector<std::string> paths;
  for (const SourceFile& file : source_tree())
    if (wrong(file)) paths.push_back(file.path);
  return paths;
}

}  // namespace strata::lint
