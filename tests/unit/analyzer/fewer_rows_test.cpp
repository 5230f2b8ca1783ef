// SPDX-License-Identifier: Apache-2.0
// Tables from a file that lack rows: each verb still answers, or refuses the file.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "analyzer/data/knowledge.h"
#include "analyzer/data/knowledge_file.h"
#include "analyzer/render/render.h"
#include "analyzer/render/scan/render.h"
#include "analyzer/verbs/doctor.h"
#include "analyzer/verbs/scan.h"
#include "tests/explain/explained.h"
#include "tests/support/command_names.h"
#include "tests/unit/analyzer/advice_situations.h"

namespace kshim::test {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

fs::path in_source(const char* path) { return fs::path(KSHIM_TEST_SOURCE) / path; }

std::vector<fs::path> golden_reports() {
  std::vector<fs::path> out;
  for (const auto& entry : fs::recursive_directory_iterator(in_source("tests/golden")))
    if (entry.path().extension() == ".jsonl") out.push_back(entry.path());
  return out;
}

/// What each row of `messages` and each code says by itself.
constexpr const char* kLogs[] = {
    "Unknown CUDA arch (12.0f) or GPU not supported\n",
    "GPU: RTX 5090\nCUDA error: no kernel image is available for execution on the device\ntorch "
    "2.4.1+cu121\n",
    "Tesla K80\nDriver Version: 470.82\nnvcc fatal   : Unsupported gpu architecture 'compute_37'\nCUDA "
    "toolkit 12.4\n",
    "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory\n",
    "CUDA driver version is insufficient for CUDA runtime version\nDriver Version: 450.80\n",
    "ptxas application ptx input, line 9; fatal   : Unsupported .version 8.7; current version is '8.4'\n",
    "RuntimeError: cuDNN version mismatch: cuDNN 9.1 was built, 8.9 found\nGTX 1080\n",
    "CUDA error 209\n",
    "CUDA error 222\nRTX 4090\n",
    "CUDA error 98\n",
    "CUDA error 700\n"};

void ask_all(bool all) {
  ScanRequest request;
  for (const char* arch : {"sm_37", "sm_61", "sm_90", "sm_120"})
    if (const auto parsed = image::parse_arch(arch)) request.targets.push_back(*parsed);
  const std::vector<fs::path> reports = golden_reports();
  AnalysisOptions options;
  options.targets = request.targets;
  options.root = "fewer_rows_root";  // whose packages nobody is asked about
  rendered(analyze(reports, options), Format::markdown, {});
  for (const char* log : kLogs) explained(log);
  for (const char* word : {"209", "CUDA_ERROR_NO_DEVICE", "cudaErrorNope", "48"}) explain_text(word, {});
  request.driver = {11, 4};
  rendered(scan({fs::path("fewer_rows.ptx")}, request), Format::text, {});
  newer_cuda_than_known({99, 0});
  newer_ptx_than_known({99, 0});
  if (!all) return;
  examine(Machine("/", {{"PATH", "/usr/bin"}}), "");
  situations::each_situation([](const Facts&, const Advice&) {});
}

/// "" where the process that uses these tables ended well.
std::string outcome(const Json& tables, bool all) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      replace_knowledge(tables.dump(), "fewer.json");
    } catch (const std::runtime_error&) {
      ::_exit(0);  // refused
    }
    try {
      ask_all(all);
    } catch (const std::runtime_error&) {
      ::_exit(0);  // an error that names what is missing
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "" : fmt::format("ended with {:#x}", status);
}

TEST(FewerRows, EndNoVerb) {
  std::ofstream("fewer_rows.ptx")
      << ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry k(){ret;}\n";
  EXPECT_EQ(outcome(Json{{"schema", "kshim-knowledge/1"}, {"date", "2030-01-01"}}, true), "");
  for (const auto& entry : fs::directory_iterator(in_source("knowledge"))) {
    if (entry.path().extension() != ".json") continue;
    const Json whole = Json::parse(std::ifstream(entry.path()));
    for (const auto& [section, rows] : whole.items()) {
      if (!rows.is_array()) continue;
      // Rows of the others are looked for by what a log or a file names, and need not be there.
      const bool by_key = section == "toolkits" || section == "gpus";
      const bool by_id = section == "recipes" || section == "fixes";
      Json some = {{"schema", whole["schema"]}, {"date", whole["date"]}};
      const auto check = [&](Json kept, const std::string& what, bool all) {
        some[section] = std::move(kept);
        EXPECT_EQ(outcome(some, all), "") << section << ": " << what;
      };
      check(Json::array(), "no row", false);
      check(Json::array({rows.front()}), "the first row alone", by_key);
      if (!by_key && !by_id) continue;
      check(Json::array({rows.back()}), "the last row alone", by_key);
      for (std::size_t i = 0; i < rows.size(); i += std::max<std::size_t>(1, rows.size() / 8)) {
        Json kept = rows;
        kept.erase(i);
        check(std::move(kept), fmt::format("without row {}", i), false);
      }
    }
  }
}

}  // namespace
}  // namespace kshim::test
