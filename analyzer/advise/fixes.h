// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/advise/advice.h"
#include "analyzer/advise/build_plan.h"
#include "analyzer/data/reach.h"
#include "analyzer/say/shell.h"

namespace kshim::advise {

/// A fix while it is made: its steps have no text yet.
struct FixDraft : core::Fix {
  std::vector<say::Command> steps = {};

  bool needs(unsigned what) const {
    return std::ranges::any_of(steps,
                               [what](const say::Command& command) { return (command.needs & what) != 0; });
  }
};
using FixDrafts = std::vector<FixDraft>;

struct AdviceDraft {
  FixDrafts fixes;  ///< ordered by what works soonest
  std::vector<core::DeadEnd> dead_ends;
  std::vector<std::string> remarks;
};

/// Its steps of that kind, in order.
template <class Kind, class Draft>
auto steps_of(Draft& fix) {
  std::vector<decltype(std::get_if<Kind>(&fix.steps.front().steps.front().action))> out;
  for (auto& command : fix.steps)
    for (auto& step : command.steps)
      if (auto* own = std::get_if<Kind>(&step.action)) out.push_back(own);
  return out;
}

/// One more clause of a caveat; an empty one is none.
inline void add_clause(std::string& caveat, std::string_view clause) {
  caveat.append(caveat.empty() || clause.empty() ? "" : "; ").append(clause);
}

/// What pip is to install goes there; nothing has to be taken out.
void add_new_environment(std::string_view python, FixDraft& fix);

/// Its row; nullptr where the GPU is not known, or no table knows it.
inline const data::GpuRow* gpu_of(const diagnose::Facts& at) {
  return at.gpu.cc ? data::find_gpu(*at.gpu.cc) : nullptr;
}

/// The commands of a row, a line each; without those whose words are not known.
std::vector<say::Command> commands_of(std::string_view lines, const core::TemplateWords& words = {},
                                      const std::string* program = nullptr);
/// A row of any table of fixes with its words filled in.
template <class Row>
FixDraft fix_of_row(const Row& row, std::string_view id, const core::TemplateWords& words,
                    const std::string* program = nullptr) {
  FixDraft out{{row.kind,
                core::expand_filled(row.title, words),
                {},
                core::expand_filled(row.why, words),
                core::expand_filled(row.caveat, words),
                id}};
  if constexpr (requires { row.who; }) out.actor = core::actor_of(row.who);
  out.steps = commands_of(row.command, words, program);
  return out;
}
/// The row of the table fixes with its words filled in, and `program`, where it is given, for PROGRAM. "a/b":
/// variant b of fix a.
FixDraft fix_of(std::string_view id, const core::TemplateWords& words = {},
                const std::string* program = nullptr);

/// Whether the log shows what a row's key `when` names; empty: it always does.
bool is_shown(std::string_view when, const diagnose::Facts& at);
/// Whether a row asks for a word which neither the message nor the lines beside it have.
bool has_gap(std::string_view text, const core::TemplateWords& words);
/// Linux in WSL has the driver of Windows.
bool has_windows_driver(const diagnose::Facts& at);

/// What helps with the message of a log's deciding line.
struct Remedies {
  FixDrafts of_package;  ///< for this package or situation
  FixDrafts others;
  data::Rest rest = data::Rest::also;  ///< what becomes of the fixes of its cause
  bool for_gpu = false;                ///< one of them is for the very GPU
  /// They stand alone: nothing is to be made of the cause.
  bool alone() const { return rest == data::Rest::alone; }
};
Remedies remedies_of(const diagnose::Facts& at);
/// Puts them beside the fixes of the cause.
void add_remedies(Remedies remedies, AdviceDraft& advice);
/// The newest CUDA that compiles for the GPU and that the driver runs; unknown where the GPU is not known.
image::Version newest_cuda_for(const diagnose::Facts& at);
/// The first fix, where it is a build, as the build command that the log shows, for this GPU.
void use_own_command(const diagnose::Facts& at, FixDrafts& fixes);
/// What the log lists as installed decides which side to change: that fix comes first.
void add_by_listing(const diagnose::Facts& at, FixDrafts& fixes);

/// What the tables have for the cause, whatever else is known.
void add_plain_fixes(const diagnose::Facts& at, FixDrafts& fixes);

/// Rebuilding the file with code for the device: with the toolkit that built it where that can, else with the
/// one that can.
void add_rebuild_fixes(const diagnose::Facts& at, FixDrafts& fixes);
/// What its user calls it: the name, else the program at work, which also goes before the name of what is
/// vendored.
std::string called(const diagnose::Facts& at, std::string_view name);
/// Another release of a program or package that its user did not build.
void add_other_build_fix(const diagnose::Facts& at, FixDrafts& fixes);
/// Rebuilding a package that was compiled against PyTorch, where it is not known which.
void add_extension_rebuild(const diagnose::Facts& at, FixDrafts& fixes);
/// Rebuilding the file with a toolkit whose cubins the driver reads.
void add_rebuild_for_driver(const diagnose::Facts& at, FixDrafts& fixes);

// Packages that others build: the fix is another release.

/// The toolkits that build for all of a plan: "CUDA 8.0 to 12.9", "CUDA 12.8 and newer"; empty where none
/// does.
std::string toolkit_range(const say::BuildPlan& plan);
std::string toolkit_range(image::ComputeCapability cc);
/// The newest toolkit with code for the GPU, under whatever name (Thor is 10.1 to CUDA 12 and 11.0 to CUDA
/// 13); nullptr where the newest of all has it.
const data::ToolkitRow* last_before_dropped(const diagnose::Facts& at);
/// "CUDA 12.9 or older", "CUDA 12.8 or newer".
std::optional<std::string> toolkits_with_code(image::ComputeCapability cc);

/// Whether the file, or the archive it is in, is a closed library of NVIDIA's.
bool is_vendors(const diagnose::Facts& at);
void add_release_fix(const diagnose::Facts& at, FixDrafts& fixes);
/// The package of the same release for another CUDA, which toolkits for this GPU build: a question with the
/// command that answers it, and a claim only where a row of the table wheels says what it has. False where
/// there is no such name.
bool add_sibling_fix(const diagnose::Facts& at, FixDrafts& fixes);
/// The release of cuDNN or TensorRT that serves the GPU, where the one that is there does not.
void add_listed_release_fix(const diagnose::Facts& at, FixDrafts& fixes);

/// Where the library's releases that serve the GPU were built for an older CUDA alone: no package of them
/// belongs beside what is there. nullopt elsewhere. `there`: the CUDA of what is there, 0 = not known.
std::optional<FixDraft> older_cuda_fix(std::string_view library, image::ComputeCapability device,
                                       unsigned there);
/// "cuDNN", "TensorRT": the library whose releases the table library_support knows; empty where it knows
/// none.
std::string_view listed_library(const diagnose::Facts& at);
/// The release of such a library that serves the GPU: "<9.11", ">=10.8"; empty where none does, or where it
/// is there.
std::string release_range(const diagnose::Facts& at);

/// Building the release of a project that still goes with a toolkit that has the GPU. False where the tables
/// know of none.
bool add_source_build(const diagnose::Facts& at, FixDrafts& fixes);

/// The CUDA that the source asks for at least; unknown where no table tells.
image::Version least_source_cuda(const diagnose::Facts& at);
/// The newest CUDA that is known to run here: of a Jetson, the one that the log names.
image::Version driver_limit(const diagnose::Facts& at);
/// Takes out what the machine that was read cannot do: commands of another system, a CUDA that its GPU never
/// runs, or that the source does not take. Where a driver update is needed first, that is said.
void keep_feasible(const diagnose::Facts& at, FixDrafts& fixes);

/// What the installed packages ask for of one another decides: no step leaves it. A package that asks for
/// another release is exchanged in the same fix; of a library that an owner links, another major version is
/// no fix.
void keep_pins(const diagnose::Facts& at, AdviceDraft& advice);

/// Fix::assumed, of Facts::unsaid.
void note_assumed(const diagnose::Facts& at, FixDrafts& fixes);

/// The CUDA that the source asks for at least, where the GPU was dropped before that; unknown otherwise.
image::Version source_asks_beyond(const diagnose::Facts& at);

// Another build of a package that exists already: a variant for another CUDA, or another release, that has
// code for the GPU.

/// Adds the command where one is known. `distribution` overrides what the file is of. True where the build is
/// known, not second hand, to have machine code for the GPU, and known to be another than the one that is
/// there.
bool add_wheel_fix(const diagnose::Facts& at, FixDrafts& fixes, std::string_view distribution = {});
/// Whether the PyTorch that is installed has code for the GPU, by the tables; nullopt where they do not tell.
/// NVIDIA's libraries beside it are those that its build asks for.
std::optional<bool> torch_serves(const diagnose::Facts& at);
/// 35: a build that the driver runs. False where none is known.
bool add_wheel_for_driver(const diagnose::Facts& at, FixDrafts& fixes);
/// For a package whose installed release has code for the GPU: names the file without code and how to rebuild
/// it.
/// `there`: its row; nullptr where only the log says that it works.
void add_serving_fixes(const diagnose::Facts& at, const data::WheelRow* there, AdviceDraft& advice);
/// Says so where no published build is known to serve the GPU.
void add_wheel_remarks(const diagnose::Facts& at, std::vector<std::string>& remarks);
/// Other variants of the release that users of other GPUs recommend but that have no code for this one.
/// one.
std::vector<std::string> useless_variants(const diagnose::Facts& at);

// What pip built here, from a folder or a repository (`pip install -e .`): it is built again from there, not
// from what an index has under its name.

struct RecipeCommand {
  say::Command command;
  std::string caveat;
};

/// A build, and the caveat of its recipe with what tells where to run it. `source` (owner/direct_url.h): it
/// is built from there, or in that folder, and the caveat tells what an earlier build leaves behind;
/// elsewhere where the steps need a checkout and none is at hand. `project`: whose checkout it is, for the
/// caveat.
RecipeCommand command_for(say::Build build, std::string_view source = {}, std::string_view project = {});

/// How pip installs it again from there.
say::Command install_from(std::string_view source);

/// The folder of one JIT-compiled PyTorch extension; empty for any other file.
std::string extension_folder(const diagnose::Facts& at);
/// A file in PyTorch's cache of compiled extensions: PyTorch compiles it again after it is deleted.
void add_extension_fix(const diagnose::Facts& at, FixDrafts& fixes);
/// What conda, apt or dnf installed, where nothing better is known.
void add_package_fix(const diagnose::Facts& at, FixDrafts& fixes);

// Packages that a rebuild does not fix, and what helps instead: the table workarounds.

bool has_other_ways(const diagnose::Facts& at);
/// Whether the package is one of them. Its fixes, where a row has the cause, are added.
bool add_other_ways(const diagnose::Facts& at, FixDrafts& fixes);

// What to do about CUDA libraries that do not belong into one process, or not to this GPU.

void add_missing_library_advice(const diagnose::MissingLibrary& missing, AdviceDraft& out);
/// Facts::conflict is there.
void add_library_advice(const diagnose::Facts& at, AdviceDraft& out);

// What to do when NVRTC or nvJitLink does not compile for a GPU.

void add_compiler_fixes(const diagnose::Facts& at, AdviceDraft& advice);

// Driver updates, up to the last branch that supports the GPU.

/// To go to, and never what is there. `of_linux`: may be empty, for `cuda` alone.
say::UpdateDriver driver_from(const diagnose::Facts& at, std::string_view of_linux, image::Version cuda = {});
/// "stay within branch R580: ...", "keep the driver within R580, ..."; the latter is empty where none is the
/// last.
std::string within_branch(const data::GpuRow& gpu);
std::string driver_to_keep(const diagnose::Facts& at);
/// The oldest driver that runs what is built with a CUDA major version, and drives the GPU. Empty: not known.
std::string_view oldest_driver(const diagnose::Facts& at, unsigned major);
/// The newest toolkit whose PTX the driver's compiler reads; nullptr where that is not known.
const data::ToolkitRow* toolkit_that_driver_reads(const diagnose::Facts& at);
/// 222: PTX that is newer than the driver.
void add_newer_ptx_fixes(const diagnose::Facts& at, AdviceDraft& advice);
/// 200: cubins or compression that the driver does not read.
void add_newer_driver_fixes(const diagnose::Facts& at, AdviceDraft& advice);
/// 35: a runtime that wants a newer driver.
void add_runtime_fixes(const diagnose::Facts& at, AdviceDraft& advice);

// A driver that does not drive the GPU: fix that first; no other fix helps before.

/// Whether the driver supports the GPU.
data::DriverSupport driver_support(const diagnose::Facts& at);
/// The driver to install, where the one that is there does not drive the GPU.
void add_gpu_driver_fix(const diagnose::Facts& at, data::DriverSupport serving, FixDrafts& fixes);
/// The situation after the driver is fixed.
diagnose::Facts with_supported_driver(const diagnose::Facts& at, data::DriverSupport serving);
/// That the driver is fine; or that it is not, and so contradicts that the program met this GPU.
void add_driver_remark(const diagnose::Facts& at, data::DriverSupport serving,
                       std::vector<std::string>& remarks);

/// What people try in this situation although it cannot help, with why not.
void add_dead_ends(const diagnose::Facts& at, data::DriverSupport serving, AdviceDraft& advice);

// Remarks beside the fixes: the driver is fine, or no rebuild helps.

/// People would suspect the driver: whether it is fine is worth saying.
bool asks_for_the_driver(const diagnose::Facts& at);
void add_remarks(const diagnose::Facts& at, data::DriverSupport serving, AdviceDraft& advice);
/// A driver, toolkit, PTX or GPU that the answer depends on, and that is newer than the tables.
void add_newer_than_known(const diagnose::Facts& at, std::vector<std::string>& remarks);

/// The fixes with the text of their commands, for the Python and the system of the situation.
Advice printed(const diagnose::Facts& at, AdviceDraft draft);

}  // namespace kshim::advise
