// SPDX-License-Identifier: Apache-2.0
// What a fix asks a person to do, as values. Whether a step is feasible, for which system and for which
// Python is asked of these; text_of() makes the text of a command, and nothing reads that back.
#pragma once

#include "analyzer/core/finding.h"
#include "analyzer/core/text.h"
#include "analyzer/owner/databases.h"

namespace kshim::advise {

/// What pip or conda is to install: "jax[cuda12]==0.5.*".
struct Requirement {
  std::string name;
  std::string extras;
  std::string release;  ///< "==0.5.*"; empty: any
};

struct Step {
  enum class Kind : std::uint8_t { run, install, remove, set, unset, container };
  Kind kind = Kind::run;
  std::string before;        ///< what joins it to the step before, and the variables that it alone gets
  std::string_view verb;     ///< of install and remove, as the tables write it: "pip install "
  std::string text;          ///< what follows that; of other kinds all of it
  std::string_view program;  ///< of kind run: the first word
  std::vector<Requirement> packages = {};  ///< of install
  std::vector<std::string> sources = {};   ///< of install: its indexes
  bool asks_for_gpu = false;               ///< it prints which GPU there is
};

/// What a command takes for granted.
namespace need {
enum Need : unsigned {
  none = 0,
  system = 1U << 0,   ///< a system like Linux
  linux = 1U << 1,    ///< programs, files and notations that Windows has not
  posix = 1U << 2,    ///< a shell of POSIX: variables before a program, &&
  gpu = 1U << 3,      ///< which GPU it is
  manager = 1U << 4,  ///< pip, conda or apt
};
}  // namespace need

/// Steps on one line.
struct Command {
  std::vector<Step> steps;
  unsigned needs = need::none;
  bool names_program = false;  ///< it holds the program that failed, or has a place for it
  bool empty() const { return steps.empty(); }
};

enum class Holes : std::uint8_t { drop, keep };
/// A command of the tables with its words filled in, and `program`, where it is given, for PROGRAM. Only the
/// pattern tells what its steps are; what is filled in does not. Holes::drop: empty where a word is.
Command command_of(std::string_view pattern, const TemplateWords& words = {},
                   const std::string* program = nullptr, Holes holes = Holes::drop);

/// Where the commands of a fix run.
struct Shell {
  const PythonEnvironment& python;
  bool windows = false;
  std::string interpreter = {};  ///< of Windows: what starts Python, where the program brings its own
};
/// "pip install X" as `PREFIX/bin/python -m pip install X`; as `uv pip install --python PREFIX X` where the
/// environment has no pip; "conda install X" with --prefix. As the tables have it where no environment is
/// known.
std::string text_of(const Command& command, const Shell& shell);
std::string text_of(const Command& command);

/// 12.0 of `cupy-cuda12x` and `jax[cuda12]`, 11.8 of an index with cu118: the first CUDA that the packages or
/// their indexes name; unknown where none does.
image::Version cuda_of(const Command& command);
/// The package that is to be of a release which PyPI does not have; empty: there is none.
std::string_view unpublished_in(const Command& command);

/// A fix while it is made.
struct FixDraft : Fix {
  std::vector<Command> steps = {};

  bool runs_container() const;
  bool asks_for_gpu() const;
  bool pins_release() const;
  bool needs_any(unsigned needs) const;
};
using FixDrafts = std::vector<FixDraft>;

struct AdviceDraft {
  FixDrafts fixes;  ///< ordered by what works soonest
  std::vector<DeadEnd> dead_ends;
  std::vector<std::string> remarks;
};

}  // namespace kshim::advise
