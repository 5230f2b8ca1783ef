// SPDX-License-Identifier: Apache-2.0
// library-not-found, of a program that the dynamic linker ended before it began: there is no report of it.
#include <fmt/core.h>

#include "analyzer/core/text.h"
#include "analyzer/diagnose/advice_input.h"
#include "analyzer/diagnose/aftermath.h"

namespace kshim::analysis {
namespace {

constexpr double kLinkerSays = 0.97;

}  // namespace

Finding missing_library(const MissingLibrary& missing) {
  Finding out;
  out.cause = Cause::library_not_found;
  out.severity = row_of(out.cause).severity;
  out.confidence = kLinkerSays;
  out.headline =
      fmt::format("{} was not found, which {} needs", missing.name, basename_of(missing.needed_by));
  out.object = missing.name;
  out.evidence.push_back(
      {EvidenceId::library_missing,
       fmt::format("{} ended with 127 before it began, and the dynamic linker finds no {} for {}.",
                   basename_of(missing.program), missing.name, missing.needed_by),
       {},
       {{"library", missing.name}, {"needed_by", missing.needed_by}}});
  if (!missing.folder.empty())
    out.evidence.push_back({EvidenceId::library_elsewhere,
                            fmt::format("There is one in {}, where it does not look.", missing.folder),
                            {},
                            {{"folder", missing.folder}}});
  AdviceInput at;
  at.cause = out.cause;
  at.missing = missing;
  out.about = std::make_shared<const AdviceInput>(std::move(at));
  return out;
}

// The runtime that a program is linked with statically answers 35 by itself: nothing asks the driver, and
// there is no report.
Finding no_driver(const std::string& program) {
  constexpr double kAllFits = 0.85;
  AdviceInput at;
  at.cause = Cause::no_device;
  at.code = 35;
  at.object = program;
  Finding out;
  out.cause = at.cause;
  out.severity = row_of(out.cause).severity;
  out.confidence = kAllFits;
  out.object = program;
  out.headline =
      fmt::format("{} has GPU code, and there is no driver for it: no libcuda.so.1", basename_of(program));
  out.evidence.push_back(
      {EvidenceId::library_missing,
       fmt::format(
           "{} failed, has device code of its own, and the dynamic linker finds no libcuda.so.1 here.",
           basename_of(program)),
       {},
       {{"library", "libcuda.so.1"}, {"needed_by", program}}});
  out.about = std::make_shared<const AdviceInput>(std::move(at));
  return out;
}

}  // namespace kshim::analysis
