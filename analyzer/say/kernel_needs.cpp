// SPDX-License-Identifier: Apache-2.0
#include "analyzer/say/kernel_needs.h"

#include <fmt/core.h>

#include <algorithm>

#include "analyzer/core/text.h"
#include "kshim/image/cubin.h"

namespace kshim::scan {
namespace {

constexpr std::uint32_t kUnknown = image::KernelInfo::kUnknown;

/// Smallest and largest over all images that tell; empty where none does, or all say 0.
std::string range_of(const ScannedKernel& kernel, std::uint32_t KernelNeeds::*member) {
  std::uint32_t least = kUnknown;
  std::uint32_t most = 0;
  for (const KernelNeeds& image : kernel.images) {
    if (image.*member == kUnknown) continue;
    least = std::min(least, image.*member);
    most = std::max(most, image.*member);
  }
  if (most == 0) return {};
  return least == most ? fmt::format("{}", most) : fmt::format("{} to {}", least, most);
}

}  // namespace

std::string needs_text(const ScannedKernel& kernel) {
  std::vector<std::string> out;
  const auto add = [&](std::uint32_t KernelNeeds::*member, std::string_view before, std::string_view after) {
    const std::string range = range_of(kernel, member);
    if (!range.empty()) out.push_back(fmt::format("{}{} {}", before, range, after));
  };
  add(&KernelNeeds::registers, "", "registers");
  add(&KernelNeeds::shared_bytes, "", "bytes shared");
  add(&KernelNeeds::local_bytes, "", "bytes local");
  add(&KernelNeeds::max_threads, "up to ", "threads");
  return analysis::join(out, ", ");
}

}  // namespace kshim::scan
