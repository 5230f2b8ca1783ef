// SPDX-License-Identifier: Apache-2.0
// Reports, one or several one after the other, through the reader, the analysis and every renderer.
#include <linux/memfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analyzer/core/text.h"
#include "analyzer/render/render.h"
#include "analyzer/verbs/analysis.h"
#include "fuzz_target.h"
#include "kshim/base/hash.h"
#include "tests/support/command_names.h"

using namespace kshim;
using namespace kshim::test;

namespace {

/// A file in memory with a name of its own, written again for each input.
class MemoryFile {
 public:
  MemoryFile()  // glibc 2.17 has no memfd_create
      : fd_(static_cast<int>(::syscall(SYS_memfd_create, "report", MFD_CLOEXEC))),
        path_("/proc/self/fd/" + std::to_string(fd_)) {
    fuzz::require(fd_ >= 0, "a file in memory can be made");
  }
  void fill(std::string_view bytes) {
    fuzz::require(::ftruncate(fd_, 0) == 0, "it can be emptied");
    fuzz::require(::pwrite(fd_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
                  "and filled");
    // Each reader opens the name again, and reads from the start.
  }
  const std::string& path() const { return path_; }

 private:
  int fd_;
  std::string path_;
};

// A line that begins a report begins a file.
std::vector<std::string_view> reports_of(std::string_view input) {
  constexpr std::string_view kFirst = "\n{\"type\":\"process\"";
  constexpr std::size_t kMax = 4;
  std::vector<std::string_view> out;
  std::size_t begin = 0;
  while (out.size() + 1 < kMax) {
    const std::size_t next = input.find(kFirst, begin);
    if (next == std::string_view::npos) break;
    out.push_back(input.substr(begin, next + 1 - begin));
    begin = next + 1;
  }
  out.push_back(input.substr(begin));
  return out;
}

AnalysisOptions options_of(std::uint64_t choice) {
  AnalysisOptions out;
  out.root = "/dev/null";  // fuzz_attribution reads databases of packages; this machine's take most of a run
  if ((choice & 1U) != 0) out.targets = {{{9, 0}, {}}, {{12, 0}, {}}, {{3, 5}, {}}};
  if ((choice & 6U) == 6) out.assume_cc = image::ComputeCapability{7, 5};
  if ((choice & 24U) == 24) out.assume_driver = image::Version{12, 2};
  return out;
}

RunFacts run_of(std::uint64_t choice) {
  RunFacts out;
  if ((choice & 32U) != 0) out.ending.status = static_cast<int>(choice >> 8 & 1U);
  if ((choice & 192U) == 192) out.ending.signal = 9;
  return out;
}

void check_finding(const Finding& finding) {
  fuzz::require(finding.confidence >= 0 && finding.confidence <= 1, "confidence is from 0 to 1");
  fuzz::require(finding.processes.size() <= finding.processes_total, "what is listed is counted");
  fuzz::require(finding.kernels.size() <= 1000, "kernels are bounded");
  fuzz::require(finding.evidence.size() <= 64, "evidence is bounded");
}

void check_text(std::string_view text) {
  // What sanitize() leaves as it is has nothing that could steer a terminal.
  std::string lines(text);
  std::replace(lines.begin(), lines.end(), '\n', ' ');
  fuzz::require(sanitize(lines) == lines, "no controls, no bidirectional overrides, no broken UTF-8");
}

void check_page(std::string_view page) {
  fuzz::require(page.find("<script>kshim") == std::string_view::npos, "no script of the report");
  fuzz::require(page.find("<img src=x") == std::string_view::npos, "no tag of the report");
}

void check(Format format, const std::string& output) {
  fuzz::require(!output.empty() || format == Format::github, "every format says something");
  switch (format) {
    case Format::json:
    case Format::sarif:
      fuzz::require(nlohmann::json::accept(output), "it is JSON");
      break;
    case Format::html:
    case Format::junit:
      check_page(output);
      break;
    case Format::github:
      fuzz::require(output.find("\n::kshim") == std::string::npos, "no command of the report");
      break;
    default:
      break;
  }
  check_text(output);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static std::array<MemoryFile, 4> files;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  std::vector<std::filesystem::path> paths;
  for (const std::string_view report : reports_of(input)) {
    files[paths.size()].fill(report);
    paths.emplace_back(files[paths.size()].path());
  }
  const std::uint64_t choice = content_hash(fuzz::input_of(data, size));
  const Analysis analysis = analyze(paths, options_of(choice), run_of(choice));
  fuzz::require(analysis.processes.size() <= paths.size(), "a report is a process");
  for (const Finding& finding : analysis.findings) check_finding(finding);
  RenderOptions options;
  options.verbose = (choice >> 16 & 1U) != 0;
  options.full = (choice >> 17 & 1U) != 0;
  options.unicode = (choice >> 18 & 3U) != 0;
  // Two formats an input: rendering all of them takes longer than all the rest.
  for (const std::uint64_t which : {choice >> 20, choice >> 40}) {
    const Format format = kFormats[which % kFormats.size()];
    check(format, rendered(analysis, format, options));
  }
  return 0;
}
