// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/settle.h"

#include <fmt/core.h>

#include <algorithm>

#include "analyzer/data/knowledge.h"

namespace kshim::analysis {
namespace {

std::string_view argument(const Fix& fix, std::string_view name) {
  for (const auto& [key, value] : fix.arguments)
    if (key == name) return value;
  return {};
}

bool is_of_torch(std::string_view package) {
  return package == "torch" || package == "torchvision" || package == "torchaudio" ||
         package == "pytorch-gpu";
}

// PyTorch's wheels ask for these by release: pip exchanges them with it.
bool comes_with_torch(std::string_view package) {
  return package.starts_with("nvidia-") || package == "cuDNN" || package == "Triton" || package == "triton";
}

/// The first build of PyTorch that any finding asks for.
struct Leading {
  const Finding* finding = nullptr;
  Fix fix;
  std::string prefix;  ///< of the environment
};

Leading leading_of(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings)
    for (const Fix& fix : finding.fixes)
      if (finding.about && is_of_torch(argument(fix, "package")))
        return {&finding, fix, finding.about->python_env.prefix};
  return {};
}

// Whether the build serves what the other finding is about.
bool serves(const Fix& fix, const AdviceInput& at) {
  if (!at.device) return false;
  const WheelRow* row =
      find_wheel(argument(fix, "package"), argument(fix, "release"), argument(fix, "variant"));
  return row != nullptr && serves(*row, *at.device) != image::Choice::none;
}

bool is_needless(const Leading& leading, const AdviceInput& at, const Fix& fix) {
  const std::string_view package = argument(fix, "package");
  if (package.empty() || at.python_env.prefix != leading.prefix) return false;
  if (comes_with_torch(package)) return true;
  return is_of_torch(package) && fix.arguments != leading.fix.arguments && serves(leading.fix, at);
}

// A driver that one finding asks for is no dead end beside it, whatever another finding needs.
void drop_driver_dead_ends(std::vector<Finding>& findings) {
  const bool asked = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return std::any_of(finding.fixes.begin(), finding.fixes.end(),
                       [](const Fix& fix) { return fix.kind == FixKind::upgrade_driver; });
  });
  if (!asked) return;
  for (Finding& finding : findings)
    std::erase_if(finding.dead_ends, [](const DeadEnd& row) { return row.of_driver; });
}

}  // namespace

void settle(std::vector<Finding>& findings) {
  drop_driver_dead_ends(findings);
  const Leading leading = leading_of(findings);
  if (leading.finding == nullptr) return;
  for (Finding& finding : findings) {
    if (&finding == leading.finding || !finding.about) continue;
    const std::size_t dropped = std::erase_if(
        finding.fixes, [&](const Fix& fix) { return is_needless(leading, *finding.about, fix); });
    if (dropped != 0 && finding.fixes.empty())
      finding.remarks.push_back(
          fmt::format("{}, as another finding asks: pip then exchanges this as well.", leading.fix.title));
  }
}

}  // namespace kshim::analysis
