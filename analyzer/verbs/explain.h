// SPDX-License-Identifier: Apache-2.0
// From a number, a name, a message or a log to what it means, why, and what to do: what `kshim explain`
// calls. Needs no network, GPU or report.
#pragma once
#include <istream>

#include "analyzer/advise/remedies.h"
#include "analyzer/verbs/analysis.h"

namespace kshim::verbs {

struct ExplainRequest {
  std::optional<image::ComputeCapability> assume_cc;
  std::optional<image::Version> assume_driver;
  std::optional<image::Version> assume_toolkit;
};

/// Explanation::subject of a log that comes through a pipe.
inline constexpr const char* kStandardInput = "stdin";

/// An error of CUDA's that was asked for.
struct Meaning {
  int code = 0;
  std::string driver_name;   ///< CUDA_ERROR_...; empty where the driver has none
  std::string runtime_name;  ///< cudaError..., empty as above
  std::string message;
  std::string note;  ///< "before CUDA 10.1, the runtime's number for it was 48"
};

/// What the error can also stand for, and what would show it.
struct Possibility {
  core::Cause cause = core::Cause::unknown;
  std::string when;
};

enum class Asked : std::uint8_t { number, name, message, log };
std::string_view to_name(Asked asked);

struct Explanation {
  Asked asked = Asked::message;
  std::string subject;            ///< what was asked for, or the log's name
  std::vector<Meaning> meanings;  ///< several where a number had another meaning before CUDA 10.1
  std::uint64_t line = 0;         ///< of a log: the line that decided; 0 = none
  std::string quote;              ///< that line
  core::TextPart part;            ///< of it, what decided
  std::vector<core::Finding> findings;
  std::vector<Possibility> also;
  std::optional<OtherAnswer> other;  ///< where nothing of CUDA's failed: what did
  std::vector<advise::NextStep> next;
  std::vector<std::string> facts;  ///< what was read beside the failure, each a clause
  std::vector<std::string> notes;
  std::vector<std::string> nearest;  ///< names that are like one that is none
  bool windows = false;              ///< the log is of Windows, and so are the commands
  bool recognized = true;            ///< false: neither a failure of CUDA's nor one that is known as none
};

Explanation explain_text(std::string_view text, const ExplainRequest& options);
/// Reads to the end. `progress` is called with the bytes read so far.
Explanation explain_log(std::istream& in, const std::string& name, const ExplainRequest& options,
                        const std::function<void(std::uint64_t)>& progress);

}  // namespace kshim::verbs
