// SPDX-License-Identifier: Apache-2.0
// Which architectures a rebuild should name, and how each build system wants to be told. A plan never names
// what its toolkit cannot build.
#pragma once

#include "analyzer/advise/step.h"
#include "analyzer/data/knowledge.h"

namespace kshim::advise {

struct PlannedArch {
  image::Arch arch;
  bool sass = false;
  bool ptx = false;
  bool added = false;  ///< new: for a device that lacks code
};

struct BuildPlan {
  const ToolkitRow* toolkit = nullptr;
  std::vector<PlannedArch> archs;         ///< ascending
  std::vector<image::Candidate> dropped;  ///< what the file has and this toolkit cannot build
  bool by_ptx = false;                    ///< the device is served by compiling PTX at load
};

/// The architectures of `have` plus what serves `device`, and `also` as far as the toolkit can, and PTX of
/// the newest. nullopt when `toolkit` can build nothing for `device` that the driver takes.
std::optional<BuildPlan> plan_build(const std::vector<image::Candidate>& have,
                                    image::ComputeCapability device, const ToolkitRow& toolkit,
                                    image::Version driver,
                                    const std::vector<image::ComputeCapability>& also = {});

/// The toolkit to build with for a device, when the one at hand cannot: the newest of the wanted major that
/// emits code for it and is not newer than the driver, else the newest of these that also builds all of
/// `have`, else the newest that is not newer than the driver, else the oldest that can.
const ToolkitRow* recommend_toolkit(image::ComputeCapability device, std::optional<image::Version> near,
                                    image::Version driver, const std::vector<image::Candidate>& have = {});

/// The newest toolkit that emits machine code which runs on the device; nullptr where none does.
const ToolkitRow* last_with_code_for(image::ComputeCapability device);

/// "-gencode arch=compute_75,code=sm_75 ...", "75-real;90", "7.5;9.0+PTX". Empty where the build system has
/// no word for any of it.
std::string arch_list(const BuildPlan& plan, ArchList style);

/// A recipe's command with its placeholders replaced.
struct RecipeWords {
  std::string nvcc = "nvcc";
  std::string mode;  ///< what nvcc is told before all else: " -rdc=true"
  std::string toolkit;
  std::string output;
  std::string build = "build";
  std::string package = ".";
  std::string project;              ///< "auto_gptq 0.7.1": whose checkout it is, where `package` is "."
  std::string program = "PROGRAM";  ///< the command line, quoted
  std::string variable;             ///< of CMake, for the architectures
  std::string source;               ///< what pip builds, quoted, and the folder with its checkout
  std::string folder;
  std::string tag;  ///< of the release in the project's repository: "@v0.24.1", or nothing
};
/// `pip install` with the options that rebuild a package.
std::string_view pip_install(Pip how);
/// A recipe's command; `pattern` in place of its own.
Command expand_recipe(const RecipeRow& recipe, const BuildPlan& plan, const RecipeWords& words,
                      std::string_view pattern = {});

// How each build system wants to be told which architectures to build: the lists of a plan, in its words.

/// PTX for the newest plain architecture, so that GPUs which are newer still can compile it.
void add_newest_ptx(std::vector<PlannedArch>& archs);
/// The f image of the same compute capability; nullptr where there is none.
PlannedArch* family_sibling(std::vector<PlannedArch>& archs, const PlannedArch& plain);
/// "8.6": the newest without a suffix.
std::string newest_plain(const BuildPlan& plan);

}  // namespace kshim::advise
