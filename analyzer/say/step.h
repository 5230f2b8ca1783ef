// SPDX-License-Identifier: Apache-2.0
// What a fix asks a person to do, as values. Whether a step is feasible, for which system and for which
// Python is asked of these; shell.h makes their text, and nothing reads that back.
#pragma once

#include "analyzer/core/finding.h"
#include "analyzer/data/knowledge.h"

namespace kshim::say {

/// What pip or conda is to install: "jax[cuda12]==0.5.*".
struct Requirement {
  std::string name;
  std::string extras;
  std::string release;  ///< "==0.5.*"; empty: any
};

/// pip or conda installs packages.
struct Install {
  std::string_view tool;                   ///< as the tables write it: "pip", "python -m pip", "conda"
  std::string_view action;                 ///< "install", "update"
  std::vector<std::string> words;          ///< what follows, each as a shell takes it
  std::vector<Requirement> packages = {};  ///< that the words name
  std::vector<std::string> indexes = {};   ///< and where they are from
  std::string_view environment = {};       ///< a new one, to install into
};

/// pip takes packages away.
struct Remove {
  std::string_view tool;
  std::string words;
};

struct Variable {
  std::string name;
  std::string value;  ///< as a POSIX shell takes it
};

struct SetEnv {
  std::vector<Variable> variables;
};

struct Unset {
  std::vector<std::string> names;
};

struct Container {
  std::string command;
};

/// Any other program.
struct Run {
  std::string program;
  std::string command;
  bool asks_for_gpu = false;  ///< it prints which GPU there is
};

struct PlannedArch {
  image::Arch arch;
  bool sass = false;
  bool ptx = false;
  bool added = false;  ///< new: for a device that lacks code
};

/// The architectures that a build is to have. A plan never names what its toolkit cannot build.
struct BuildPlan {
  const data::ToolkitRow* toolkit = nullptr;
  std::vector<PlannedArch> archs;         ///< ascending
  std::vector<image::Candidate> dropped;  ///< what the file has and this toolkit cannot build
  bool by_ptx = false;                    ///< the device is served by compiling PTX at load
};

/// A build system compiles for the architectures of a plan. Texts are quoted for the shell.
struct Build {
  const data::RecipeRow* recipe = nullptr;
  BuildPlan plan;
  std::string pattern = {};  ///< in place of the recipe's own
  std::string toolkit = {};  ///< the folder of one that is not at hand; empty: the one that is
  std::string mode = {};     ///< what nvcc is told before all else: " -rdc=true"
  std::string output = {};
  std::string folder = "build";  ///< of CMake
  std::string package = ".";     ///< what pip builds: its name, or a checkout
  std::string tag = {};          ///< of the release in the project's repository: "@v0.24.1", or nothing
  std::string source = {};       ///< what pip built it from, and the folder with that
  std::string checkout = {};
  std::string variable = {};        ///< of CMake, for the architectures
  std::string program = "PROGRAM";  ///< the command line
};

/// The driver of the machine becomes another one.
struct UpdateDriver {
  std::string release = {};  ///< of Linux: that one, or a newer one; empty: not known
  image::Version cuda = {};  ///< one for that CUDA, where no release is known
  bool beyond = false;       ///< newer than that one, which is there
  bool jetpack = false;      ///< it comes with JetPack
};

using Action = std::variant<Install, Remove, SetEnv, Unset, Container, Run, Build, UpdateDriver>;

struct Step {
  bool if_done = false;             ///< only where the step before it succeeded
  std::vector<Variable> with = {};  ///< that it alone gets
  Action action;
};

/// What a command takes for granted.
namespace need {
enum Need : unsigned {
  none = 0,
  system = 1U << 0,   ///< a system like Linux
  linux = 1U << 1,    ///< programs, files and notations that Windows has not
  gpu = 1U << 2,      ///< which GPU it is
  manager = 1U << 3,  ///< pip, conda or apt
  python = 1U << 4,   ///< Python, or what installs its packages
  host = 1U << 5,     ///< rights on the machine itself: its modules, services, limits and devices
};
}  // namespace need

/// Steps on one line.
struct Command {
  std::vector<Step> steps;
  unsigned needs = need::none;
  bool names_program = false;  ///< it holds the program that failed, or has a place for it
  bool empty() const { return steps.empty(); }
};

}  // namespace kshim::say
