// SPDX-License-Identifier: Apache-2.0
// Which commands may be printed.
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/advise/fixes.h"
#include "analyzer/advise/wheel_choice.h"
#include "analyzer/core/text.h"
#include "analyzer/data/knowledge_file.h"

namespace kshim::advise {
using core::Fix;

namespace {

namespace fs = std::filesystem;

template <class Unfit>
void take_out(std::vector<Fix>& fixes, std::string_view why, Unfit unfit) {
  for (Fix& fix : fixes) {
    if (std::erase_if(fix.commands, unfit) == 0) continue;
    add_clause(fix.caveat, why);
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
  for (const data::CacheRow& row : data::caches())
    if (!row.fallback.starts_with('/')) add(std::string(row.variable).c_str(), row.fallback);
  add("TORCH_EXTENSIONS_DIR", ".cache/torch_extensions");
  return out;
}

}  // namespace

void keep_printable(std::vector<Fix>& fixes) {
  take_out(fixes, "a command is left out: a name in it has characters that some shells obey",
           [](const std::string& command) { return command.find(core::kNoShellWord) != std::string::npos; });
}

void ForeignNames::add(const input::Report& report) {
  const auto add_word = [&](std::string_view word) {
    constexpr std::size_t kShortest = 2;
    if (word.size() >= kShortest && !too_many_) words_.emplace(word);
    too_many_ = words_.size() > kMax;
  };
  const auto add_paths = [&](std::string_view list) {
    while (!list.empty()) {
      const fs::path path(list.substr(0, list.find(':')));
      list.remove_prefix(std::min(list.size(), path.native().size() + 1));
      for (const fs::path& each : {path, path.parent_path()})
        if (each.has_parent_path() && each != each.root_path()) add_word(each.native());
    }
  };
  // A command may hold the name of a file alone: `nvcc -o saxpy`.
  const auto add_file = [&](const fs::path& path) {
    add_paths(path.native());
    for (const fs::path& name : {path, path.filename(), path.stem()}) add_word(name.native());
  };
  add_file(report.process.exe);
  add_file(report.process.cwd);
  for (const std::string& argument : report.process.argv) add_paths(argument);
  for (const auto& [name, value] : report.process.env) add_paths(value);
  for (const input::ObjectRecord& row : report.objects) add_file(row.path);
  for (const input::LibraryRecord& row : report.libraries) add_file(row.path);
  for (const input::BypassRecord& row : report.bypasses) add_file(row.path);
  for (const input::PackageRecord& row : report.packages) {
    add_paths(row.environment);
    add_word(row.source);
    add_word(row.channel);
  }
  for (const input::FailureRecord& failure : report.failures) {
    for (const input::NativeFrame& frame : failure.native) add_paths(frame.object);
    for (const input::PythonFrame& frame : failure.python) add_paths(frame.file);
  }
}

void ForeignNames::take_out_of(std::vector<Fix>& fixes) const {
  take_out(
      fixes,
      "a command is left out: the report is another user's, and the command would hold a name that it gives",
      [&](const std::string& command) {
        return too_many_ || std::ranges::any_of(words_, [&](const std::string& word) {
                 return command.find(word) != std::string::npos;
               });
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
  const bool inside =
      std::ranges::any_of(folders, [&](const fs::path& folder) { return is_below(real, folder); });
  return inside ? real.string() : std::string();
}

void keep_for_language(const diagnose::Facts& at, FixDrafts& fixes) {
  if (!is_shown("not-python", at)) return;
  std::stable_partition(fixes.begin(), fixes.end(), [&](FixDraft& fix) {
    const auto is_pythons = [](const say::Command& command) {
      return (command.needs & say::need::python) != 0;
    };
    return std::erase_if(fix.steps, is_pythons) == 0 || !fix.steps.empty();
  });
}

void keep_for_nix(const diagnose::Facts& at, FixDrafts& fixes) {
  if (!is_shown("nix", at) || !at.gpu.cc || !lacks_code(at.cause)) return;
  // Nothing is installed into its store, and it builds for a list of its own.
  for (FixDraft& fix : fixes)
    std::erase_if(fix.steps,
                  [](const say::Command& command) { return (command.needs & say::need::python) != 0; });
  fixes.insert(fixes.begin(),
               fix_of("set-nix-capabilities", {{"cc", name(*at.gpu.cc)}, {"gpu", sm_name(*at.gpu.cc)}}));
}

void keep_for_conda(const diagnose::Facts& at, FixDrafts& fixes) {
  if (at.package.manager != "conda") return;
  const data::WheelName own = wheel_of(at);
  const data::InstallerRow* row = data::find_installer(own.distribution, "conda");
  image::Version cuda = newest_cuda_for(at);
  constexpr image::Version kOfToday{12, 9};  // most drivers run it
  const data::ToolkitRow* of_today = data::toolkit_at_most(kOfToday);
  if (!at.driver.cuda.known() && kOfToday < cuda && of_today != nullptr &&
      builds_for(*of_today, {*at.gpu.cc, image::Suffix::none}))
    cuda = kOfToday;
  for (FixDraft& fix : fixes) {
    bool of_package = false;
    const auto is_pips = [&](const say::Command& command) {
      return std::ranges::any_of(command.steps, [&](const say::Step& step) {
        const say::Install* install = std::get_if<say::Install>(&step.action);
        if (install == nullptr) return std::holds_alternative<say::Remove>(step.action);
        if (install->tool == "conda" || !install->environment.empty()) return false;
        for (const say::Requirement& package : install->packages)
          of_package = of_package || data::wheel_name(package.name).distribution == own.distribution;
        return true;
      });
    };
    if (std::erase_if(fix.steps, is_pips) == 0 || !of_package || !fix.steps.empty()) continue;
    fix.steps = row != nullptr && cuda.known()
                    ? commands_of(row->command, {{"cuda", name(cuda)}, {"major", std::to_string(cuda.major)}})
                    : commands_of("conda update {package}",
                                  {{"package", core::shell_quote(at.package.name.shown())}});
  }
  std::stable_partition(fixes.begin(), fixes.end(), [](const FixDraft& fix) {
    return !fix.steps.empty() ||
           (fix.kind != core::FixKind::reinstall && fix.kind != core::FixKind::downgrade);
  });
}

void keep_for_windows(const diagnose::Facts& at, FixDrafts& fixes) {
  // A program of Windows runs in no container of Linux.
  if (!core::contains(at.call.message, "docker") && !core::contains(at.call.message, "container"))
    std::erase_if(fixes, [](const FixDraft& fix) { return !steps_of<say::Container>(fix).empty(); });
  for (FixDraft& fix : fixes)
    std::erase_if(fix.steps,
                  [](const say::Command& command) { return (command.needs & say::need::linux) != 0; });
}

}  // namespace kshim::advise
