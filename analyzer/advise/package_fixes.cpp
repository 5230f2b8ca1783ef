// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/package_fixes.h"

#include <fmt/core.h>

#include <algorithm>

#include "analyzer/core/text.h"

namespace kshim::analysis {

std::string extension_folder(const AdviceInput& at) {
  if (at.object.find("/../") != std::string::npos) return {};
  constexpr std::string_view kCache = "/torch_extensions/";
  const std::size_t cache = at.object.find(kCache);
  if (cache == std::string::npos || at.object.ends_with('/')) return {};
  const std::size_t slash = at.object.rfind('/');
  return slash > cache + kCache.size() ? at.object.substr(0, slash) : std::string();
}

void add_extension_fix(const AdviceInput& at, std::vector<Fix>& fixes) {
  const std::string folder = extension_folder(at);
  if (folder.empty()) return;
  fixes.push_back(
      {FixKind::rebuild, fmt::format("Delete the compiled {}", basename_of(folder)),
       at.removable.empty() ? std::vector<std::string>() : std::vector{"rm -r " + shell_quote(at.removable)},
       "the next start compiles it for the GPUs that are visible then",
       "where TORCH_CUDA_ARCH_LIST is set, it decides in their place: unset it; machines with "
       "different GPUs that "
       "share a home each need a TORCH_EXTENSIONS_DIR of their own",
       "delete-compiled-extension"});
}

void add_package_fix(const AdviceInput& at, std::vector<Fix>& fixes) {
  if (at.package.empty()) return;
  const std::string package = shell_quote(at.package);
  Fix fix{FixKind::reinstall,
          fmt::format("Take a build of {} that has code for this GPU", at.package),
          {},
          "",
          "",
          "take-other-build"};
  const bool offered = std::any_of(fixes.begin(), fixes.end(),
                                   [](const Fix& each) { return each.kind == FixKind::reinstall; });
  if (offered) return;
  if (at.manager == "conda") {
    const std::string channel = " -c " + shell_quote(at.channel.empty() ? "conda-forge" : at.channel) + " ";
    const std::string prefix = at.environment.empty() ? "" : " -p " + shell_quote(at.environment);
    fix.commands = {"conda search" + channel + package, "conda update" + prefix + channel + package};
    fix.why = "conda installed it, and what conda installed only conda replaces";
  } else if (at.manager == "dpkg") {
    fix.commands = {"sudo apt-get update && sudo apt-get install --only-upgrade " + package};
    fix.why = "it is a package of the distribution";
  } else if (at.manager == "rpm") {
    fix.commands = {"sudo dnf upgrade " + package};
    fix.why = "it is a package of the distribution";
  } else {
    return;
  }
  fix.caveat = "whether a newer build has the code is not known: kshim scan says what is in it";
  fixes.push_back(std::move(fix));
}

}  // namespace kshim::analysis
