// SPDX-License-Identifier: Apache-2.0
// What CUDA_VISIBLE_DEVICES leaves of the GPUs that are there.
#include "kshim/base/visible_devices.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "analyzer/core/text.h"
#include "analyzer/diagnose/machine_checks.h"

namespace kshim::doctor {
namespace {

using analysis::Severity;

void warn(Facts& facts, std::string_view id, std::string text, std::string advice) {
  facts.checks.push_back({Severity::warning, std::string(id), std::move(text), std::move(advice)});
}

}  // namespace

void check_visible_devices(const Machine& machine, Facts& facts) {
  const std::string_view value = machine.env("CUDA_VISIBLE_DEVICES");
  const bool no_uuids =
      std::all_of(facts.gpus.begin(), facts.gpus.end(), [](const Gpu& gpu) { return gpu.uuid.empty(); });
  bool comparable = true;
  const VisibleDevices got =
      read_visible_devices(value, [&](std::string_view item) -> std::optional<std::size_t> {
        // Instances of a split GPU are not listed here.
        comparable = comparable && !item.starts_with("MIG-") && !(item.starts_with("GPU-") && no_uuids);
        for (std::size_t i = 0; i < facts.gpus.size(); ++i) {
          const bool by_uuid =
              item.size() > 4 && item.starts_with("GPU-") && facts.gpus[i].uuid.starts_with(item);
          if (by_uuid || item == std::to_string(i)) return i;
        }
        return std::nullopt;
      });
  if (!comparable) return;
  // Without a driver to ask there is no list to compare with, but for what hides everything anywhere.
  const bool hides = value.empty() || got.stranger == "-1" || value == "NoDevFiles";
  if (facts.gpus.empty() && !hides) return;
  if (got.shown.empty())
    warn(facts, "hidden-devices",
         fmt::format(
             "CUDA_VISIBLE_DEVICES='{}' hides every GPU{}: programs are told 100, no device", value,
             got.twice ? ", as far as is known, for it names one twice"
             : hides   ? ""
                     : fmt::format(", for '{}' names none of the {} here", got.stranger, facts.gpus.size())),
         "unset CUDA_VISIBLE_DEVICES");
  else if (!got.stranger.empty())
    warn(facts, "unknown-device",
         fmt::format("CUDA_VISIBLE_DEVICES='{}': '{}' names no GPU that is here, and hides what follows it",
                     value, got.stranger),
         fmt::format("see nvidia-smi -L; {} here", analysis::counted(facts.gpus.size(), "GPU")));
}

}  // namespace kshim::doctor
