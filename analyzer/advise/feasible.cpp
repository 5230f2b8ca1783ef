// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/fixes.h"
#include "analyzer/advise/wheel_choice.h"

namespace kshim::advise {

using image::Version;

Version least_source_cuda(const AdviceInput& at) {
  const std::string distribution = wheel_of(at).distribution;
  Version least;
  for (const SourceNeedRow& row : source_needs()) {
    if (row.distribution == distribution && (!least.known() || row.oldest_cuda < least))
      least = row.oldest_cuda;
  }
  return least;
}

Version driver_limit(const AdviceInput& at) {
  // A Jetson whose JetPack has ended: what the log names is of its JetPack.
  const bool jetson = !at.driver.known() && at.device && find_gpu(*at.device) != nullptr &&
                      find_gpu(*at.device)->tegra && !can_ever_run(at.device, toolkits().back().version);
  return jetson ? at.toolkit : at.driver;
}

namespace {

// 12.0 of `cupy-cuda12x` and `jax[cuda12]`, 11.8 of `cuda-11.8` and `cu118`, 9.2 of `cuda92`: what a command
// of the tables installs. Unknown where it names none.
Version cuda_named_in(std::string_view command) {
  for (std::size_t at = command.find("cu"); at != std::string_view::npos; at = command.find("cu", at + 2)) {
    std::string_view rest = command.substr(at + 2);
    if (rest.starts_with("da")) rest.remove_prefix(2);
    if (rest.starts_with('-')) rest.remove_prefix(1);
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    if (digits < 2 || digits > 3) continue;
    const auto digit = [&](std::size_t i) { return static_cast<std::uint16_t>(rest[i] - '0'); };
    if (rest[0] != '1') return {digit(0), digit(1)};
    const std::uint16_t major = static_cast<std::uint16_t>(digit(0) * 10 + digit(1));
    if (digits == 3) return {major, digit(2)};
    const bool dotted = rest.size() > 3 && rest[2] == '.' && rest[3] >= '0' && rest[3] <= '9';
    return {major, dotted ? digit(3) : std::uint16_t{0}};
  }
  return {};
}

bool is_feasible(const AdviceInput& at, const Fix& fix) {
  if (fix.system == "linux" && platform_of(at).starts_with("windows")) return false;
  if (!fix.cuda.known()) return true;
  const bool of_source = fix.id == "rebuild" && comes_built(at);
  if (of_source && fix.cuda < least_source_cuda(at)) return false;
  const GpuRow* gpu = at.device ? find_gpu(*at.device) : nullptr;
  // A Jetson has the driver of its JetPack, and no other.
  return gpu != nullptr && gpu->tegra ? can_run(at.device, driver_limit(at), fix.cuda)
                                      : can_ever_run(at.device, fix.cuda);
}

bool holds_any_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return text.find(word) != text.npos; });
}

bool depends_on(const AdviceInput& at, const Fix& fix, Assumed what) {
  const std::string text = join(fix.commands, "\n");
  const bool chosen = fix.id == "install-build";  // for this GPU or driver
  switch (what) {
    case Assumed::gpu:
      return chosen || holds_any_of(text, {"ARCH_LIST=", "ARCHITECTURES=\"", "compute_", "=sm_"});
    case Assumed::cuda:
      return fix.cuda.known() && !chosen && !at.driver.known();
    case Assumed::driver:
      return fix.cuda.known() && fix.kind == FixKind::reinstall && at.toolkit.major < fix.cuda.major;
    case Assumed::system:
      return holds_any_of(text, {"sudo ", "export ", "unset ", "rm -", "/usr/", "/dev/", "/proc/", "ldconfig",
                                 "env -u", "| grep", "$("});
    case Assumed::package_manager:
      return holds_any_of(text, {"pip install", "conda install", "conda update", "apt-get install"});
    case Assumed::python:
      return chosen && text.find("==") != text.npos;
  }
  return false;
}

// "'cuda-toolkit[nvcc]==10.0.*'": the package, where PyPI has no such release.
std::string_view unpublished_in(std::string_view command) {
  for (const FirstReleaseRow& row : first_releases())
    for (std::size_t at = command.find(row.package); at != command.npos;
         at = command.find(row.package, at + 1)) {
      std::string_view rest = command.substr(at + row.package.size());
      if (rest.starts_with('[')) rest.remove_prefix(std::min(rest.find(']') + 1, rest.size()));
      if (!rest.starts_with("==") && !rest.starts_with("~=")) continue;
      rest.remove_prefix(2);
      if (!is_on_pypi(row.package, rest.substr(0, rest.find_first_not_of("0123456789.*"))))
        return row.package;
    }
  return {};
}

// The fix stays right, and the package is not the way to it: false, and the command goes.
bool keeps_commands(Fix& fix) {
  const std::size_t before = fix.commands.size();
  for (const std::string& command : fix.commands)
    if (const std::string_view package = unpublished_in(command); !package.empty())
      fix.caveat += fmt::format("{}PyPI has no {} as old as that", fix.caveat.empty() ? "" : "; ", package);
  std::erase_if(fix.commands, [](const std::string& command) { return !unpublished_in(command).empty(); });
  return fix.commands.size() == before;
}

}  // namespace

void note_assumed(const AdviceInput& at, std::vector<Fix>& fixes) {
  for (Fix& fix : fixes)
    for (const Assumed what : at.unsaid)
      if (depends_on(at, fix, what)) fix.assumed.push_back(what);
}

void keep_feasible(const AdviceInput& at, std::vector<Fix>& fixes) {
  for (Fix& fix : fixes)
    if (!fix.cuda.known() && fix.kind == FixKind::reinstall && !fix.commands.empty())
      fix.cuda = cuda_named_in(fix.commands.back());
  std::erase_if(fixes, [&](const Fix& fix) { return !is_feasible(at, fix); });
  std::stable_partition(fixes.begin(), fixes.end(), keeps_commands);
  // A driver that was too old for one build is not asked to run a newer one.
  if (at.cause == Cause::ptx_newer_than_driver && !at.driver.known())
    std::erase_if(fixes, [&](const Fix& fix) {
      return fix.kind == FixKind::reinstall && fix.cuda.known() && !(fix.cuda < at.toolkit);
    });
  // What the driver does not run is no fix beside one that it does.
  const auto beyond = [&](const Fix& fix) {
    return fix.kind == FixKind::reinstall && !can_run(at.device, at.driver, fix.cuda);
  };
  const auto runs = [&](const Fix& fix) { return !beyond(fix) && fix.kind != FixKind::fallback; };
  if (std::any_of(fixes.begin(), fixes.end(), runs)) std::erase_if(fixes, beyond);
  for (Fix& fix : fixes) {
    if (can_run(at.device, at.driver, fix.cuda)) continue;
    const ToolkitRow* row = toolkit_at_most(fix.cuda);
    const std::string_view driver = fix.cuda.major >= 11 ? oldest_driver(at, fix.cuda.major)
                                    : row != nullptr     ? row->driver
                                                         : "";
    if (!driver.empty())
      fix.caveat += fmt::format("{}it needs driver {} or newer, and yours is for CUDA {}",
                                fix.caveat.empty() ? "" : "; ", driver_text(at, driver), name(at.driver));
  }
}

}  // namespace kshim::advise
