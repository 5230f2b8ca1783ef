// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/bypass.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "analyzer/core/text.h"

namespace kshim::analysis {
namespace {

constexpr std::size_t kMostFiles = 3;

/// The linker's text for a file may be relative to where the process began.
std::string absolute(const std::string& path, const std::string& folder) {
  if (path.starts_with('/') || folder.empty()) return path;
  return (std::filesystem::path(folder) / path).lexically_normal().string();
}

/// "a, b and 2 more": empty where no file was loaded in that way.
std::string files_loaded(const Report& report, std::string_view how) {
  std::vector<std::string> names;
  std::size_t more = 0;
  for (const BypassRecord& bypass : report.bypasses) {
    if (bypass.how != how) continue;
    const std::string path = absolute(bypass.path, report.process.cwd);
    if (names.size() < kMostFiles)
      names.push_back(path);
    else
      ++more;
  }
  if (more != 0) names.push_back(fmt::format("{} more", more));
  return enumerate(names);
}

}  // namespace

std::optional<BlindProcess> blind_by_bypass(const Report& report) {
  std::string reason;
  if (const std::string files = files_loaded(report, "deepbind"); !files.empty()) {
    reason = fmt::format("what {} asked of CUDA went past libkshim.so: loaded with RTLD_DEEPBIND", files);
    const auto audit = report.process.env.find("LD_AUDIT");
    const bool audited =
        audit != report.process.env.end() && audit->second.find("libkshim-audit.so") != std::string::npos;
    reason +=
        audited ? ", and not bound by calls that `kshim run --audit` sees" : " (try `kshim run --audit`)";
  }
  if (const std::string files = files_loaded(report, "namespace"); !files.empty()) {
    if (!reason.empty()) reason += "; ";
    reason += fmt::format(
        "what {} asked of CUDA went past libkshim.so: loaded with dlmopen into a namespace of its own",
        files);
  }
  if (reason.empty()) return std::nullopt;
  return BlindProcess{
      .pid = static_cast<long>(report.process.pid), .exe = report.process.exe, .reason = std::move(reason)};
}

}  // namespace kshim::analysis
