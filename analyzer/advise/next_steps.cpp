// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/next_steps.h"

#include <fmt/core.h>

#include <algorithm>

namespace kshim::explain {

using analysis::Cause;

std::vector<NextStep> next_steps(const Clues& clues, const Judgement& judgement) {
  std::vector<NextStep> out;
  const Cause cause = judgement.suspect.cause;
  const bool images = analysis::is_image_cause(cause) || cause == Cause::unknown ||
                      cause == Cause::unchecked_failure || cause == Cause::stale_error ||
                      cause == Cause::compiled_out;
  const char* program = clues.python ? "python PROGRAM.py" : "PROGRAM";
  if (images) {
    out.push_back({fmt::format("kshim run -- {}", program),
                   "names the file, the kernel and the line that failed, and what the file holds"});
  }
  if (images && clues.lists.empty()) {
    const std::string gpu = judgement.facts.device
                                ? fmt::format(" --target {}", image::to_name(*judgement.facts.device).view())
                                : std::string();
    out.push_back({fmt::format("kshim scan{} {}", gpu, clues.python ? "VENV_OR_WHEEL" : "FILE"),
                   "lists what a file, a wheel or an environment has code for, without running it"});
  }
  if (!judgement.facts.device || !clues.driver.known()) {
    out.push_back(
        {"kshim doctor",
         "says which GPU and driver this machine has, and which CUDA libraries a program would load"});
  }
  const bool nccl = std::any_of(clues.hits.begin(), clues.hits.end(),
                                [](const Hit& hit) { return hit.id == "nccl_unhandled"; });
  if (nccl) out.push_back({fmt::format("NCCL_DEBUG=INFO {}", program), "NCCL then says which error it met"});
  if (cause == Cause::nvrtc_arch_unsupported)
    out.push_back({fmt::format("kshim run -- {}", program),
                   "names the compiler library that was loaded, and what it knows"});
  return out;
}

}  // namespace kshim::explain
