// SPDX-License-Identifier: Apache-2.0
// Every recipe against the tool that it is for, where that is here: the shell for all, nvcc, make and CMake
// for those that call them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "analyzer/advise/fixes.h"
#include "analyzer/data/knowledge.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

namespace fs = std::filesystem;

class Recipes : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("kshim_recipes_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const char* name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  std::string read(const fs::path& name) const {
    std::ostringstream out;
    out << std::ifstream(folder_ / name).rdbuf();
    return out.str();
  }
  /// In the folder, with bash; what it printed is in `said`.
  bool runs(const std::string& command) {
    write("command.sh", command + "\n");
    const std::string line = "cd '" + folder_.string() + "' && bash command.sh >said 2>&1";
    const int status = std::system(line.c_str());
    said_ = read("said");
    return status == 0;
  }

  fs::path folder_;
  std::string said_;
};

Build build_of(const RecipeRow& recipe, const BuildPlan& plan, bool other_toolkit = false) {
  Build out{&recipe, plan};
  out.output = "'a file.so'";
  out.folder = "'a build'";
  out.package = "a_package";
  out.tag = "@v1.2.3";
  out.mode = " -rdc=true";
  if (other_toolkit) out.toolkit = "/usr/local/cuda-12.9";
  return out;
}

TEST_F(Recipes, AreCommandsToTheShell) {
  if (std::system("bash -c true") != 0) GTEST_SKIP() << "there is no bash";
  std::string script;
  std::size_t commands = 0;
  for (const GpuRow& gpu : gpus()) {
    const ToolkitRow* toolkit = last_toolkit_for({gpu.cc, image::Suffix::none});
    if (toolkit == nullptr) continue;  // newer than tests/knowledge
    const auto plan = plan_build({}, gpu.cc, *toolkit, {});
    ASSERT_TRUE(plan.has_value());
    for (const RecipeRow& row : recipes()) {
      if (arch_list(*plan, row.list).empty()) continue;
      for (const bool other : {false, true}) {
        const std::string command = text_of(command_of(build_of(row, *plan, other)));
        EXPECT_EQ(command.find('{'), std::string::npos) << command;
        EXPECT_EQ(command.find("  "), std::string::npos) << command;
        EXPECT_NE(command.back(), ' ') << command;
        script += command + "\n";
        ++commands;
      }
    }
  }
  EXPECT_GT(commands, 1000U);
  write("all.sh", script);
  EXPECT_TRUE(runs("bash -n all.sh")) << said_;
}

// As AreCommandsToTheShell, for what pip built of a folder or a repository.
TEST_F(Recipes, OfPipBuildTheUsersOwnSource) {
  if (std::system("bash -c true") != 0) GTEST_SKIP() << "there is no bash";
  const auto plan = plan_build({}, {8, 6}, *find_toolkit({12, 8}), {});
  std::string script;
  std::size_t replaced = 0;
  for (const RecipeRow& row : recipes()) {
    const std::string own = text_of(command_of(build_of(row, *plan)));
    for (const std::string_view source : {"-e /src/it's", "/src/x", "git+https://h.org/o/r@01"}) {
      const auto [built, caveat] = command_for(build_of(row, *plan), source);
      const std::string command = text_of(built);
      script += command + "\n";
      const bool placed = caveat.find("run it in ") == std::string::npos;
      if (command == own) {  // it needs a checkout and there is none, or has nothing to do with one
        EXPECT_EQ(caveat, command_for(build_of(row, *plan)).caveat);
        EXPECT_TRUE(source.starts_with("git+") || placed) << command;
        continue;
      }
      EXPECT_TRUE(placed) << caveat;
      EXPECT_EQ(caveat.find("delete it first") != std::string::npos, !source.starts_with("git+")) << caveat;
      if (own.find("pip install ") == std::string::npos) {
        EXPECT_TRUE(command.starts_with("cd ") && command.ends_with(own)) << command;
        continue;
      }
      EXPECT_EQ(command.find("--no-build-isolation") != std::string::npos,
                own.find("--no-build-isolation") != std::string::npos)
          << command;
      ++replaced;
      const std::size_t architectures = command.find(arch_list(*plan, row.list));
      EXPECT_LT(architectures, command.rfind("pip install ")) << command;
      const bool stepwise = command.starts_with("cd ");
      const std::string end = !stepwise                  ? command.substr(command.rfind("--no-deps"))
                              : source.starts_with("-e") ? " -e ."
                                                         : " .";
      EXPECT_TRUE(command.ends_with(end)) << command;
      EXPECT_EQ(command.find("--no-binary"), std::string::npos) << command;
    }
  }
  EXPECT_GT(replaced, 40U);
  write("all.sh", script);
  EXPECT_TRUE(runs("bash -n all.sh")) << said_;
}

TEST_F(Recipes, AskForTheirGpu) {
  const auto lists = [](image::ComputeCapability cc, ArchList style) {
    const ToolkitRow* toolkit = last_toolkit_for({cc, image::Suffix::none});
    return arch_list(*plan_build({}, cc, *toolkit, {}), style);
  };
  EXPECT_EQ(lists({8, 9}, ArchList::flash), "80");
  EXPECT_EQ(lists({12, 1}, ArchList::flash), "120");
  EXPECT_EQ(lists({7, 5}, ArchList::flash), "");
  EXPECT_EQ(lists({6, 1}, ArchList::kokkos), "-DKokkos_ARCH_PASCAL61=ON");
  EXPECT_EQ(lists({12, 1}, ArchList::kokkos), "-DKokkos_ARCH_BLACKWELL120=ON");
  EXPECT_EQ(lists({11, 0}, ArchList::kokkos), "") << "Kokkos has no word for Thor";
  EXPECT_EQ(lists({8, 6}, ArchList::xla), "compute_86");
  EXPECT_EQ(lists({8, 6}, ArchList::comma), "86");
  EXPECT_EQ(lists({5, 2}, ArchList::lowest), "-gencode arch=compute_52,code=sm_52");
  EXPECT_EQ(lists({10, 7}, ArchList::added), "-gencode arch=compute_107,code=sm_107");
  EXPECT_EQ(lists({12, 0}, ArchList::locked), "12.0a");
  EXPECT_EQ(lists({8, 6}, ArchList::locked), "8.6");
  const std::vector<image::Candidate> have = {{image::ImageKind::cubin, *image::parse_arch("sm_75"), {}},
                                              {image::ImageKind::cubin, *image::parse_arch("sm_90a"), {}}};
  const auto plan = plan_build(have, {8, 6}, *find_toolkit({13, 0}), {});
  EXPECT_EQ(arch_list(*plan, ArchList::plain), "75;86");
  EXPECT_EQ(arch_list(*plan, ArchList::spaces), "75 86");
  EXPECT_EQ(arch_list(*plan, ArchList::dots), "7.5;8.6");
  EXPECT_EQ(arch_list(*plan, ArchList::xla), "sm_75,compute_86,sm_90a");
  EXPECT_EQ(arch_list(*plan, ArchList::rules_cuda),
            "compute_75:sm_75;compute_86:sm_86,compute_86;compute_90a:sm_90a");
}

#ifdef KSHIM_TEST_NVCC
BuildPlan plan_of_this_nvcc() {
  // Both are known to nvcc 11.1 and every later one to this day.
  const std::vector<image::Candidate> have = {{image::ImageKind::cubin, *image::parse_arch("sm_75"), {}}};
  return *plan_build(have, {8, 6}, toolkits().back(), {});
}

void replace(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

TEST_F(Recipes, OfNvccBuildWhatTheyName) {
  const BuildPlan plan = plan_of_this_nvcc();
  write("x.cu",
        "__global__ void k() {}\n__attribute__((visibility(\"default\"))) int main() { k<<<1, 1>>>(); }\n");
  std::size_t asked = 0;
  for (const char* recipe : {"nvcc", "nvcc_library", "nvcc_object", "nvcc_fatbin"}) {
    Build build{&find_recipe(recipe), plan};
    build.output = "out";
    std::string command = text_of(command_of(std::move(build)));
    replace(command, "nvcc ", KSHIM_TEST_NVCC " ");
    replace(command, "SOURCES", "x.cu");
    replace(command, "SOURCE", "x.cu");
    EXPECT_TRUE(runs(command + " --dryrun")) << command << "\n" << said_;
    for (const char* target : {"sm_75", "sm_86", "compute_86"})
      EXPECT_NE(said_.find(target), std::string::npos) << command << "\n" << said_;
    ++asked;
  }
  EXPECT_EQ(asked, 4U);
}

TEST_F(Recipes, OfMakeReachNvcc) {
  if (std::system("make --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no make";
  write("x.cu", "__global__ void k() {}\n");
  write("Makefile",
        "SMS ?= 75\nall: x\nx: x.cu\n\t" KSHIM_TEST_NVCC
        " --dryrun -fatbin $(foreach s,$(SMS),-gencode arch=compute_$(s),code=sm_$(s)) -o x x.cu\nclean:\n");
  const BuildPlan plan = plan_of_this_nvcc();
  for (const char* recipe : {"make", "make_sms"}) {
    const std::string command = text_of(command_of(Build{&find_recipe(recipe), plan}));
    EXPECT_TRUE(runs(command)) << command << "\n" << said_;
    for (const char* target : {"sm_75", "sm_86"})
      EXPECT_NE(said_.find(target), std::string::npos) << command << "\n" << said_;
  }
}

TEST_F(Recipes, OfCMakeReachNvcc) {
  if (std::system(KSHIM_TEST_CMAKE " --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no CMake";
  write("x.cu", "__global__ void k() {}\nint main() { k<<<1, 1>>>(); }\n");
  write("CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.18)\nproject(x LANGUAGES CUDA)\nadd_executable(x x.cu)\n"
        "file(WRITE ${CMAKE_SOURCE_DIR}/archs \"${CMAKE_CUDA_ARCHITECTURES}\")\n");
  // CMake's own choice may not be installed; Ninja is what this test was built with.
  const std::string setting = "export CMAKE_GENERATOR=Ninja CUDACXX=" KSHIM_TEST_NVCC;
  const BuildPlan plan = plan_of_this_nvcc();
  for (const char* recipe : {"cmake_toolkit", "cmake"}) {
    Build build{&find_recipe(recipe), plan};
    build.folder = "'a build'";
    build.toolkit = fs::path(KSHIM_TEST_NVCC).parent_path().parent_path().string();
    std::string command = text_of(command_of(std::move(build)));
    // Configured, not built: that is for nvcc.
    command = command.substr(0, command.find(" && "));
    replace(command, "cmake ", KSHIM_TEST_CMAKE " ");
    EXPECT_TRUE(runs(setting + "\n" + command)) << command << "\n" << said_;
    EXPECT_EQ(read("archs"), "75-real;86") << command;
    EXPECT_EQ(said_.find("Manually-specified variables were not used"), std::string::npos) << said_;
    fs::remove(folder_ / "archs");
  }
  // What pip's builds are told by.
  fs::remove_all(folder_ / "a build");
  EXPECT_TRUE(runs(setting + " CUDAARCHS=\"" + arch_list(plan, ArchList::cmake) +
                   "\"\n" KSHIM_TEST_CMAKE " -S . -B 'a build'"))
      << said_;
  EXPECT_EQ(read("archs"), "75-real;86");
}
#endif

}  // namespace
}  // namespace kshim::test
