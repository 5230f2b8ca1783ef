// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/printable.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "analyzer/core/text.h"
#include "analyzer/data/knowledge.h"

namespace kshim::analysis {
namespace {

namespace fs = std::filesystem;

template <class Unfit>
void take_out(std::vector<Fix>& fixes, std::string_view why, Unfit unfit) {
  for (Fix& fix : fixes) {
    if (std::erase_if(fix.commands, unfit) == 0) continue;
    fix.caveat += (fix.caveat.empty() ? "" : "; ") + std::string(why);
  }
}

/// Whether `path` lies below `folder`, both without links and "..".
bool is_below(const fs::path& path, const fs::path& folder) {
  const auto [end, rest] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end() && rest != path.end();
}

/// The caches of the caller: where a variable of this process's environment says, else where it is by
/// default.
std::vector<fs::path> own_caches(const fs::path& home) {
  std::vector<fs::path> out;
  const auto add = [&](const char* variable, const fs::path& otherwise) {
    const char* value = std::getenv(variable);
    std::error_code error;
    const fs::path folder =
        fs::canonical(value != nullptr && *value == '/' ? fs::path(value) : home / otherwise, error);
    if (!error && is_below(folder, home)) out.push_back(folder);
  };
  for (const CacheRow& row : caches())
    if (!row.fallback.starts_with('/')) add(std::string(row.variable).c_str(), row.fallback);
  add("TORCH_EXTENSIONS_DIR", ".cache/torch_extensions");
  return out;
}

}  // namespace

void keep_printable(std::vector<Fix>& fixes) {
  take_out(fixes, "a command is left out: a name in it has characters that some shells obey",
           [](const std::string& command) { return command.find(kNoShellWord) != std::string::npos; });
}

namespace {
constexpr std::string_view kNamedByAnother =
    "a command is left out: the report is another user's, and the command would hold a name that it gives";
}  // namespace

void keep_free_of_paths(const Report& report, std::vector<Finding>& findings) {
  std::vector<std::string> paths;
  const auto add = [&](std::string_view list) {
    while (!list.empty()) {
      const fs::path path(list.substr(0, list.find(':')));
      list.remove_prefix(std::min(list.size(), path.native().size() + 1));
      for (const fs::path& each : {path, path.parent_path()})
        if (each.has_parent_path() && each != each.root_path()) paths.push_back(each.string());
    }
  };
  add(report.process.exe);
  add(report.process.cwd);
  for (const std::string& argument : report.process.argv) add(argument);
  for (const auto& [name, value] : report.process.env) add(value);
  for (const ObjectRecord& row : report.objects) add(row.path);
  for (const LibraryRecord& row : report.libraries) add(row.path);
  for (const BypassRecord& row : report.bypasses) add(row.path);
  for (const PackageRecord& row : report.packages) {
    add(row.environment);
    for (const std::string& text : {row.source, row.channel})
      if (!text.empty()) paths.push_back(text);
  }
  for (const FailureRecord& failure : report.failures) {
    for (const NativeFrame& frame : failure.native) add(frame.object);
    for (const PythonFrame& frame : failure.python) add(frame.file);
  }
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  for (Finding& finding : findings)
    take_out(finding.fixes, kNamedByAnother, [&](const std::string& command) {
      return std::any_of(paths.begin(), paths.end(),
                         [&](const std::string& path) { return command.find(path) != std::string::npos; });
    });
}

void keep_free_of(const std::vector<std::string>& strings, std::vector<Fix>& fixes) {
  constexpr std::size_t kShortest = 2;
  std::vector<std::string> words;
  for (const std::string& text : strings) {
    const fs::path path(text);
    for (const std::string& word :
         {text, path.filename().string(), path.stem().string(), path.parent_path().string()})
      if (word.size() >= kShortest) words.push_back(word);
  }
  take_out(fixes, kNamedByAnother, [&](const std::string& command) {
    return std::any_of(words.begin(), words.end(),
                       [&](const std::string& word) { return command.find(word) != std::string::npos; });
  });
}

std::string removable_cache_entry(std::string_view path) {
  const char* variable = std::getenv("HOME");
  std::error_code error;
  if (variable == nullptr || *variable != '/' || !path.starts_with('/') ||
      path.find('\0') != std::string_view::npos)
    return {};
  const fs::path home = fs::canonical(variable, error);
  if (error || home == home.root_path()) return {};
  const fs::path real = fs::canonical(path, error);
  struct stat info {};
  if (error || ::lstat(real.c_str(), &info) != 0 || info.st_uid != ::geteuid()) return {};
  const std::vector<fs::path> folders = own_caches(home);
  const bool inside = std::any_of(folders.begin(), folders.end(),
                                  [&](const fs::path& folder) { return is_below(real, folder); });
  return inside ? real.string() : std::string();
}

}  // namespace kshim::analysis
