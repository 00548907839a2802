// Who may include whom, and which file stands where: the shape of the house.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "tests/lint/source_tree.h"

namespace strata::lint {
namespace {

using testing::IsEmpty;
using Layers = std::map<std::string, std::set<std::string>>;

const Layers kMayInclude = {
    {"tensor", {"tensor"}},
    {"cuda", {"cuda", "tensor"}},
    {"autograd", {"autograd", "tensor"}},
    {"nn", {"nn", "autograd", "tensor"}},
    {"optim", {"optim", "nn", "autograd", "tensor"}},
    {"data", {"data", "tensor"}},
    {"models", {"models", "nn", "autograd", "data", "tensor"}},
    {"apps", {"apps", "models", "optim", "nn", "autograd", "data", "tensor"}},
    {"tests", {"tests", "apps", "models", "optim", "nn", "autograd", "data", "tensor"}},
    {"bench", {"bench", "cuda", "apps", "models", "optim", "nn", "autograd", "data", "tensor"}},
};

// The family of a kernel file may carry a suffix that says which part of it: matmul_bf16.cpp.
const std::set<std::string> kFamilies = {"pointwise", "reduce",        "copy",    "index", "matmul",
                                         "softmax",   "cross_entropy", "norm",    "conv",  "pool",
                                         "attention", "rope",          "dropout", "quant", "optim"};

// "tensor" of `#include "tensor/tensor.h"`; "" for anything else.
std::string included_folder(const std::string& line) {
  static const std::regex kInclude(R"re(\s*#\s*include\s*"([^"/]+)/[^"]*".*)re");
  std::smatch match;
  return std::regex_match(line, match, kInclude) ? match[1].str() : "";
}

bool may_include(const SourceFile& file, const std::string& folder) {
  if (!kMayInclude.contains(folder)) return true;
  if (folder == "cuda" && (file.path.starts_with("tests/cuda/") || file.path.starts_with("apps/stage3"))) return true;
  return kMayInclude.at(file.folder).contains(folder);
}

bool has_family(const std::string& stem) {
  return std::any_of(kFamilies.begin(), kFamilies.end(),
                     [&](const std::string& family) { return stem == family || stem.starts_with(family + "_"); });
}

TEST(Layers, TableRejectsWhatItShould) {
  EXPECT_EQ(included_folder("#include \"nn/module.h\"  // why"), "nn");
  EXPECT_EQ(included_folder("#include <fmt/format.h>"), "");
  EXPECT_FALSE(may_include({"tensor/tensor.h", "tensor", {}}, "autograd"));
  EXPECT_FALSE(may_include({"models/decoder.cpp", "models", {}}, "optim"));
  EXPECT_FALSE(may_include({"apps/strata.cpp", "apps", {}}, "cuda"));
  EXPECT_TRUE(may_include({"tests/cuda/softmax_test.cpp", "tests", {}}, "cuda"));
  EXPECT_TRUE(has_family("matmul_bf16"));
  EXPECT_FALSE(has_family("matmul2"));
}

TEST(Layers, IncludesFollowTheTable) {
  EXPECT_THAT(lines_where([](const SourceFile& file, const std::string& line) {
                std::string folder = included_folder(line);
                return !folder.empty() && !may_include(file, folder);
              }),
              IsEmpty());
}

// Two headers are made by the build and have no folder.
TEST(Layers, IncludesNameTheFolderFromTheRoot) {
  static const std::regex kInclude(R"re(\s*#\s*include\s*"[^"]*".*)re");
  EXPECT_THAT(lines_where([](const SourceFile& file, const std::string& line) {
                return file.path != "apps/common/build_info.cpp" && std::regex_match(line, kInclude) &&
                       included_folder(line).empty();
              }),
              IsEmpty());
}

TEST(Layers, FirstIncludeOfASourceIsItsHeader) {
  std::set<std::string> paths;
  for (const SourceFile& file : source_tree()) paths.insert(file.path);
  EXPECT_THAT(files_where([&](const SourceFile& file) {
                std::string header = std::filesystem::path(file.path).replace_extension(".h").generic_string();
                if (file.extension() != ".cpp" || !paths.contains(header)) return false;
                auto first = std::find_if(file.lines.begin(), file.lines.end(),
                                          [](const std::string& line) { return line.starts_with("#include"); });
                return first == file.lines.end() || *first != "#include \"" + header + "\"";
              }),
              IsEmpty());
}

// Helpers beside the families are free to be called anything.
TEST(Layers, KernelsAndOpsAreInFilesOfTheirFamily) {
  static const std::regex kSlotOrOp(R"re(\bconstinit Kernel<|\bRegister\b|\brecord\()re");
  EXPECT_THAT(files_where([](const SourceFile& file) {
                bool kernel = file.path.starts_with("tensor/kernels/") || file.path.starts_with("cuda/kernels/") ||
                              file.path.starts_with("autograd/ops/");
                return kernel && !has_family(std::filesystem::path(file.path).stem()) &&
                       std::any_of(file.lines.begin(), file.lines.end(),
                                   [](const std::string& line) { return std::regex_search(line, kSlotOrOp); });
              }),
              IsEmpty());
}

TEST(Layers, EveryFamilyHasKernelOpAndTestOfItsName) {
  std::set<std::string> paths;
  for (const SourceFile& file : source_tree()) paths.insert(file.path);
  std::vector<std::string> missing;
  auto need = [&](const std::string& path) {
    if (!paths.contains(path)) missing.push_back(path);
  };
  for (const std::string& family : kFamilies) {
    bool kernel = paths.contains("tensor/kernels/" + family + ".h"),
         op = paths.contains("autograd/ops/" + family + ".h");
    if (kernel || op) {
      need("tensor/kernels/" + family + ".h");
      need("tensor/kernels/" + family + ".cpp");
      need("tests/ops/" + family + "_test.cpp");
    }
    if (op) need("autograd/ops/" + family + ".cpp");
  }
  EXPECT_THAT(missing, IsEmpty());
}

}  // namespace
}  // namespace strata::lint
