// SPDX-License-Identifier: Apache-2.0
// library-not-found, of a program that the dynamic linker ended before it began: there is no report of it.
#include <fmt/core.h>

#include "analyzer/advise/advice.h"
#include "analyzer/advise/printable.h"
#include "analyzer/core/text.h"
#include "analyzer/diagnose/aftermath.h"

namespace kshim::analysis {
namespace {

constexpr double kLinkerSays = 0.97;

bool is_driver(const std::string& name) {
  return name.starts_with("libcuda.so") || name.starts_with("libnvidia-");
}

void add_fixes(const MissingLibrary& missing, Finding& out) {
  const std::string library = missing.name.substr(0, missing.name.find(".so"));
  if (!missing.folder.empty()) {
    out.fixes.push_back({FixKind::environment,
                         fmt::format("Name the folder that has {}", missing.name),
                         {fmt::format("export LD_LIBRARY_PATH={}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}",
                                      shell_quote(missing.folder))},
                         "the linker looks there before it gives up",
                         "whatever else is started with it looks there, too; a program that is linked with "
                         "-Wl,-rpath,FOLDER needs no such variable",
                         "name-library-folder"});
  }
  if (is_driver(missing.name)) {
    out.fixes.push_back({FixKind::environment,
                         "Install the driver, or give the container its GPU",
                         {"ls -l /dev/nvidia*; ldconfig -p | grep libcuda.so.1"},
                         fmt::format("{} comes with the driver and with nothing else", missing.name),
                         "docker run --gpus all, or the NVIDIA runtime",
                         "install-driver"});
  } else {
    out.fixes.push_back(
        {FixKind::reinstall,
         fmt::format("Install {} as the program was linked with it", missing.name),
         {fmt::format("ldconfig -p | grep {}", shell_quote(library))},
         "the number behind .so is the major version, and another one does not count",
         "from NVIDIA's toolkit or its runtime packages, or the wheel nvidia-...-cuN of that version",
         "install-library"});
    out.dead_ends.push_back({"updating the driver", "it does not bring this library"});
  }
  out.dead_ends.push_back(
      {fmt::format("a symbolic link from {} to another version", missing.name),
       "functions of the same name take other arguments there: what begins then ends in a crash"});
}

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
  add_fixes(missing, out);
  keep_printable(out.fixes);
  return out;
}

// The runtime that a program is linked with statically answers 35 by itself: nothing asks the driver, and
// there is no report.
Finding no_driver(const std::string& program) {
  constexpr double kAllFits = 0.85;
  Situation situation;
  situation.cause = Cause::no_device;
  situation.code = 35;
  situation.object = program;
  Finding out;
  out.cause = situation.cause;
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
  Advice advice = advise(situation);
  out.fixes = std::move(advice.fixes);
  out.dead_ends = std::move(advice.dead_ends);
  return out;
}

}  // namespace kshim::analysis
