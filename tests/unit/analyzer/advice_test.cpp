// SPDX-License-Identifier: Apache-2.0
// advise_on() over all causes, GPUs, toolkits and origins: no advice that cannot be followed, none that makes
// it worse.
#include "analyzer/advise/advice.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "analyzer/data/knowledge.h"
#include "analyzer/diagnose/program.h"
#include "tests/support/command_names.h"
#include "tests/unit/analyzer/advice_promises.h"
#include "tests/unit/analyzer/advice_situations.h"

namespace kshim::test {
namespace {

using image::Arch;
using image::Suffix;
using image::Version;
using namespace situations;

// Every sm_NN and compute_NN of a command.
std::vector<Arch> named_in(const std::string& command) {
  std::vector<Arch> out;
  for (const std::string_view prefix : {std::string_view("sm_"), std::string_view("compute_")}) {
    for (std::size_t at = 0; (at = command.find(prefix, at)) != std::string::npos;) {
      std::size_t end = at + prefix.size();
      while (end < command.size() && std::isalnum(static_cast<unsigned char>(command[end])) != 0) ++end;
      const auto arch = image::parse_arch(std::string_view(command).substr(at, end - at));
      if (arch) out.push_back(*arch);
      at = end;
    }
  }
  // TORCH_CUDA_ARCH_LIST="6.1;7.0+PTX", CMAKE_CUDA_ARCHITECTURES="61-real;70"
  for (const std::string_view variable :
       {std::string_view("ARCH_LIST=\""), std::string_view("ARCHITECTURES=\""),
        std::string_view("CUDAARCHS=\"")}) {
    const std::size_t found = command.find(variable);
    if (found == std::string::npos) continue;
    std::string_view list = std::string_view(command).substr(found + variable.size());
    list = list.substr(0, list.find('"'));
    while (!list.empty()) {
      std::string_view word = list.substr(0, list.find(';'));
      list.remove_prefix(std::min(list.size(), word.size() + 1));
      word = word.substr(0, word.find_first_of("+-"));
      const auto arch = image::parse_arch(word);
      EXPECT_TRUE(arch.ok()) << command;
      if (arch) out.push_back(*arch);
    }
  }
  return out;
}

Version toolkit_of(const std::string& command) {
  for (const std::string_view lead : {"/usr/local/cuda-", "HERMETIC_CUDA_VERSION=", "--cuda_version="}) {
    const std::size_t found = command.find(lead);
    if (found == std::string::npos) continue;
    const std::size_t begin = found + lead.size();
    return image::parse_version(
               std::string_view(command).substr(begin, command.find_first_of("/ \"", begin) - begin))
        .value_or(Version{});
  }
  return {};
}

void expect_buildable(const Facts& at, const Advice& advice, std::size_t& checked) {
  for (const Fix& fix : advice.fixes) {
    if (fix.kind != FixKind::rebuild && fix.kind != FixKind::downgrade) continue;
    for (const std::string& command : fix.commands) {
      if (command.starts_with("grep ")) continue;
      const std::vector<Arch> archs = named_in(command);
      if (archs.empty()) continue;
      ++checked;
      const Version told = toolkit_of(command);
      const Version wanted = told.known() ? told : at.images.toolkit;
      const bool possible = std::any_of(toolkits().begin(), toolkits().end(), [&](const ToolkitRow& row) {
        return (!wanted.known() || row.version == wanted) &&
               std::all_of(archs.begin(), archs.end(), [&](Arch arch) { return builds_for(row, arch); });
      });
      EXPECT_TRUE(possible) << described(at) << ": " << command;
    }
  }
}

void expect_complete(const Facts& at, const Advice& advice, std::size_t& checked) {
  for (const Fix& fix : advice.fixes) {
    ++checked;
    EXPECT_FALSE(fix.title.empty()) << described(at);
    EXPECT_FALSE(fix.why.empty()) << described(at) << ": " << fix.title;
    const bool needs = fix.kind == FixKind::environment || fix.kind == FixKind::fallback ||
                       (fix.kind == FixKind::rebuild && !at.file.loose && at.cause != Cause::invalid_image);
    if (needs) {
      EXPECT_FALSE(fix.commands.empty()) << described(at) << ": " << fix.title;
    }
    for (const std::string& command : fix.commands) {
      EXPECT_FALSE(command.empty()) << described(at) << ": " << fix.title;
      EXPECT_EQ(command.find('{'), std::string::npos) << command;
      EXPECT_EQ(command.find("  "), std::string::npos) << command;
      EXPECT_EQ(command.find("''"), std::string::npos) << command;
      EXPECT_EQ(command.find("=\"\""), std::string::npos) << command;
    }
    EXPECT_FALSE(fix.caveat.starts_with(";")) << fix.caveat;
    EXPECT_FALSE(fix.caveat.ends_with("; ")) << fix.caveat;
  }
  for (const DeadEnd& row : advice.dead_ends) {
    EXPECT_FALSE(row.action.empty()) << described(at);
    EXPECT_FALSE(row.why.empty()) << described(at) << ": " << row.action;
  }
  std::set<std::string> once;
  for (const Fix& fix : advice.fixes) {
    for (const std::string& command : fix.commands)
      EXPECT_TRUE(once.insert(command).second || command.starts_with("pip uninstall"))
          << described(at) << ": twice " << command;
  }
}

// R580 is the last that drives a Pascal: nobody may be sent past it.
void expect_driver_in_reach(const Facts& at, const Advice& advice, std::size_t& checked) {
  const GpuRow* gpu = find_gpu(*at.gpu.cc);
  if (gpu->last_branch == 0) return;
  for (const Fix& fix : advice.fixes) {
    for (const std::string& text : {fix.title, fix.why, fix.caveat}) {
      // A way that is only named for those whom it fits ("A GPU that newer drivers have dropped keeps the
      // old one").
      if (at.cause == Cause::driver_too_old) continue;
      for (const std::string_view lead :
           {std::string_view("Update the driver to "), std::string_view("needs driver ")}) {
        const std::size_t found = text.find(lead);
        if (found == std::string::npos ||
            std::isdigit(static_cast<unsigned char>(text[found + lead.size()])) == 0)
          continue;
        ++checked;
        EXPECT_LE(std::stoul(text.substr(found + lead.size())), gpu->last_branch)
            << described(at) << ": " << text;
      }
    }
  }
}

void expect_conda_left_alone(const Facts& at, const Advice& advice, std::size_t& checked) {
  if (at.package.manager != "conda") return;
  for (const Fix& fix : advice.fixes) {
    for (const std::string& command : fix.commands) {
      ++checked;
      EXPECT_EQ(command.find("pip install"), std::string::npos) << described(at) << ": " << command;
      EXPECT_EQ(command.find("pip uninstall"), std::string::npos) << described(at) << ": " << command;
    }
  }
}

// What a wheel index is named for must have code for the GPU, by the table.
void expect_served_by_wheel(const Facts& at, const Advice& advice, std::size_t& checked) {
  for (const Fix& fix : advice.fixes) {
    for (const std::string& command : fix.commands) {
      const std::size_t url = command.find("/whl/");
      if (url == std::string::npos) continue;
      const std::size_t pin = command.find("torch==");
      ASSERT_NE(pin, std::string::npos) << command;
      std::string version = command.substr(pin + 7, command.find('\'', pin) - pin - 7);
      if (version.ends_with(".*")) version.resize(version.size() - 2);
      const std::string platform =
          gpus().empty() || !find_gpu(*at.gpu.cc)->tegra ? "linux x86_64" : "linux aarch64";
      const WheelRow* row = find_wheel("torch", version, command.substr(url + 5), platform);
      ASSERT_NE(row, nullptr) << command;
      ++checked;
      EXPECT_NE(serves(*row, *at.gpu.cc), image::Choice::none) << described(at) << ": " << command;
    }
  }
}

// One walk over all situations: they are hundreds of thousands.
TEST(Advice, KeepsItsPromisesInEverySituation) {
  std::array<std::size_t, 5> checked{};
  HonestAdvice honest;
  each_situation([&](const Facts& at, const Advice& advice) {
    expect_buildable(at, advice, checked[0]);
    expect_complete(at, advice, checked[1]);
    expect_driver_in_reach(at, advice, checked[2]);
    expect_conda_left_alone(at, advice, checked[3]);
    expect_served_by_wheel(at, advice, checked[4]);
    honest.check(at, advice);
  });
  honest.expect_enough();
  EXPECT_GT(checked[0], 10000U);
  EXPECT_GT(checked[1], 10000U);
  EXPECT_GT(checked[2], 100U);
  EXPECT_GT(checked[3], 1000U);
  EXPECT_GT(checked[4], 1000U);
}

// Whatever a report says a file or a package is called: the shell reads it back as one word.
// shows: printed commands: hostile names of files, packages, versions in every fix
TEST(Advice, IsSafeForTheShell) {
  if (std::system("bash -c true") != 0) GTEST_SKIP() << "there is no bash";
  // With what shells obey between quotes in no shell; names with ' or \\ are in no command (text_test.cpp).
  const std::string hostile = "x y;>pwned;$(>pwned)`>pwned`\">pwned\" & >pwned | >pwned #";
  std::set<std::string> commands;
  std::size_t situation = 0;
  for (const Cause cause : kCauses) {
    for (const Origin origin : kOrigins) {
      for (const char* manager : {"pip", "conda", "dpkg", "rpm"}) {
        Facts at;
        at.cause = cause;
        at.call.code = 200;
        at.gpu.cc = image::ComputeCapability{8, 6};
        at.driver.cuda = {12, 4};
        at.images.toolkit = {12, 4};
        at.images.have = some_images();
        at.file.origin = origin;
        at.file.path = "/home/u/torch_extensions/" + hostile + "/" + hostile + ".so";
        at.file.shared_library = true;
        at.file.build_folder = origin == Origin::cmake ? "/b/" + hostile : "";
        at.package.name = "cupy-cuda13x" + hostile;
        at.package.version = hostile;
        at.package.manager = manager;
        at.package.variant = hostile;
        at.gpu.serving = hostile;
        at.file.cache = hostile;
        at.file.cache_entry = at.file.removable = "/c/" + hostile;
        at.call.package = hostile + "-cuda13x";
        // The variable is one of ours; paths are the report's.
        constexpr std::array kSelects = {"", "XLA_FLAGS", "CUDA_HOME", "TRITON_PTXAS_PATH"};
        at.call.compiler = {"NVRTC",
                            {{8, 6}, Suffix::none},
                            {},
                            false,
                            {},
                            "/t/" + hostile + "/bin/ptxas",
                            {},
                            kSelects[situation++ % kSelects.size()],
                            "/t/" + hostile + "/bin/ptxas",
                            {13, 0}};
        at.call.compiler->version = {10, 2};
        at.process.program =
            command_line({"./x y;>pwned;$(>pwned)", "`>pwned`\">pwned\"", "$HOME", "~", "PROGRAM"});
        ASSERT_FALSE(at.process.program.empty());
        at.driver.switches = {};
        for (const char* version : {"", "2.9.1"}) {
          if (*version != '\0') at.package.version = version + hostile;
          for (const std::string& package :
               {std::string(), hostile, std::string("torch"), std::string("torchvision"), "mmcv" + hostile,
                std::string("numba-cuda"), std::string("paddlepaddle-gpu")}) {
            if (!package.empty()) at.package.name = package;
            for (const Fix& fix : advise_on(at).fixes)
              commands.insert(fix.commands.begin(), fix.commands.end());
            // What a log names, with no file at hand, and a GPU that only old sources take.
            Facts told = at;
            told.file.path.clear();
            told.images.have.clear();
            told.call.code = 35;
            told.driver.runtime = {13, 0};
            told.driver.cuda = {11, 4};
            told.gpu.cc = image::ComputeCapability{3, 5};
            for (const Fix& fix : advise_on(told).fixes)
              commands.insert(fix.commands.begin(), fix.commands.end());
          }
        }
      }
    }
  }
  ASSERT_GT(commands.size(), 20U);
  const auto folder =
      std::filesystem::path(::testing::TempDir()) / ("kshim_advice_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  std::size_t number = 0;
  for (const std::string& command : commands)
    std::ofstream(folder / ("c" + std::to_string(number++))) << command << "\n";
  // With no folder in PATH nothing runs but what the shell itself does, a redirection for one.
  const std::string script = "cd '" + folder.string() +
                             "' && for f in c*; do bash -n \"$f\" || { echo \"not a command: \"; cat \"$f\"; "
                             "} >>bad; env PATH=/nonexistent "
                             "/bin/bash \"$f\" >/dev/null 2>&1 </dev/null; done";
  std::ofstream(folder / "run.sh") << script << "\n";
  EXPECT_EQ(std::system(("bash '" + (folder / "run.sh").string() + "' 2>/dev/null; true").c_str()), 0);
  std::ifstream bad(folder / "bad");
  for (std::string line; std::getline(bad, line);) ADD_FAILURE() << line;
  EXPECT_FALSE(std::filesystem::exists(folder / "pwned"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace kshim::test
