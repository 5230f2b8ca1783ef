// SPDX-License-Identifier: Apache-2.0
// A runtime asks the driver for its version before all else. Where it is too old, the runtime answers 35 by
// itself: nothing fails at the driver, nothing is initialised, and there is no report.
#include <fmt/core.h>

#include "analyzer/core/codes.h"
#include "analyzer/core/text.h"
#include "analyzer/data/knowledge.h"
#include "analyzer/diagnose/advice_input.h"
#include "analyzer/diagnose/aftermath.h"
#include "analyzer/diagnose/module_images.h"

namespace kshim::analysis {
namespace {

constexpr double kBuiltByNewer = 0.9;
constexpr double kOlderThanSome = 0.6;

std::string name(image::Version version) { return std::string(image::to_name(version).view()); }

// The toolkit that built the program's own device code; a static runtime is of it.
image::Version builder_of(const std::string& exe, ObjectFiles& files) {
  if (exe.empty()) return {};
  ObjectRecord object;
  object.path = exe;
  object.build_id = build_id_of(exe);
  return find_images({&object, std::nullopt, nullptr, {}}, files).toolkit;
}

}  // namespace

std::optional<Finding> idle_driver(const IdleProcess& process, const Options& options, ObjectFiles& files) {
  if (options.exit_status.value_or(0) == 0 || options.term_signal) return std::nullopt;
  const image::Version runtime = builder_of(process.exe, files);
  const bool newer = runtime.known() && runtime.major > process.driver.major;
  // Nothing is newer than a driver for the newest toolkit.
  if (!newer && process.driver.major >= toolkits().back().version.major) return std::nullopt;
  Finding out;
  out.cause = Cause::driver_too_old;
  out.severity = row_of(out.cause).severity;
  out.confidence = newer ? kBuiltByNewer : kOlderThanSome;
  if (newer) out.object = process.exe;
  const std::string who =
      process.exe.empty() ? std::string("a process") : std::string(basename_of(process.exe));
  out.evidence.push_back(
      {EvidenceId::driver_asked,
       fmt::format(
           "{} (pid {}) asked the driver for its version, which is for CUDA {}, and did not initialise "
           "it: so does a runtime that needs a newer one, and answers 35.",
           who, process.pid, name(process.driver)),
       {},
       {{"driver", name(process.driver)}}});
  if (newer)
    out.evidence.push_back({EvidenceId::built_with,
                            fmt::format("{} was built with CUDA {}.", who, name(runtime)),
                            {},
                            {{"cuda", name(runtime)}}});
  AdviceInput at;
  at.cause = out.cause;
  at.code = kInsufficientDriver;
  at.driver = process.driver;
  if (newer) at.runtime = runtime;
  out.about = std::make_shared<const AdviceInput>(std::move(at));
  return out;
}

}  // namespace kshim::analysis
