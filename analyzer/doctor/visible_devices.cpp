// SPDX-License-Identifier: Apache-2.0
// What CUDA_VISIBLE_DEVICES leaves of the GPUs that are there.
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "analyzer/doctor/checks.h"
#include "analyzer/text/text.h"

namespace kshim::doctor {
namespace {

using analysis::Severity;

void warn(Facts& facts, std::string_view id, std::string text, std::string advice) {
  facts.checks.push_back({Severity::warning, std::string(id), std::move(text), std::move(advice)});
}

}  // namespace

// Programming Guide, "CUDA Environment Variables": indices or UUIDs (a prefix will do); the first entry that
// names no GPU ends the list. One that is named twice leaves none (assumed).
void check_visible_devices(const Machine& machine, Facts& facts) {
  const std::string_view value = machine.env("CUDA_VISIBLE_DEVICES");
  const auto names = [&](std::string_view item) -> std::optional<std::size_t> {
    for (std::size_t i = 0; i < facts.gpus.size(); ++i) {
      const bool by_uuid =
          item.size() > 4 && item.starts_with("GPU-") && facts.gpus[i].uuid.starts_with(item);
      if (by_uuid || item == std::to_string(i)) return i;
    }
    return std::nullopt;
  };
  std::vector<std::size_t> shown;
  std::string_view stranger;
  bool twice = false;
  for (std::string_view rest = value; !rest.empty();) {
    std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(item.size() + 1, rest.size()));
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    if (item.starts_with("MIG-")) return;  // instances are not listed here
    if (item.starts_with("GPU-") &&
        std::all_of(facts.gpus.begin(), facts.gpus.end(), [](const Gpu& gpu) { return gpu.uuid.empty(); }))
      return;
    const auto gpu = names(item);
    if (!gpu) {
      stranger = item;
      break;
    }
    twice = twice || std::find(shown.begin(), shown.end(), *gpu) != shown.end();
    shown.push_back(*gpu);
  }
  // Without a driver to ask there is no list to compare with, but for what hides everything anywhere.
  const bool hides = value.empty() || stranger == "-1" || value == "NoDevFiles";
  if (facts.gpus.empty() && !hides) return;
  if (shown.empty() || twice)
    warn(facts, "hidden-devices",
         fmt::format("CUDA_VISIBLE_DEVICES='{}' hides every GPU{}: programs are told 100, no device", value,
                     twice ? ", for it names one twice"
                     : hides
                         ? ""
                         : fmt::format(", for '{}' names none of the {} here", stranger, facts.gpus.size())),
         "unset CUDA_VISIBLE_DEVICES");
  else if (!stranger.empty())
    warn(facts, "unknown-device",
         fmt::format("CUDA_VISIBLE_DEVICES='{}': '{}' names no GPU that is here, and hides what follows it",
                     value, stranger),
         fmt::format("see nvidia-smi -L; {} here", analysis::counted(facts.gpus.size(), "GPU")));
}

}  // namespace kshim::doctor
