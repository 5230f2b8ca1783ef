// SPDX-License-Identifier: Apache-2.0
// The text of steps: for a POSIX shell or one of Windows, for the Python or conda that failed, for each build
// system. Nothing else makes the text of a command.
#pragma once

#include "analyzer/core/text.h"
#include "analyzer/owner/databases.h"
#include "analyzer/say/step.h"

namespace kshim::say {

enum class Holes : std::uint8_t { drop, keep };
/// A command of the tables with its words filled in, and `program`, where it is given, for PROGRAM. Only the
/// pattern tells what its steps are; what is filled in does not. Holes::drop: empty where a word is.
Command command_of(std::string_view pattern, const core::TemplateWords& words = {},
                   const std::string* program = nullptr, Holes holes = Holes::drop);
Command command_of(Build build);
/// `pip install` with the options that rebuild a package.
std::string_view pip_install(data::Pip how);

/// The words of arguments; one that was quoted stays one.
std::vector<std::string> words_of(std::string_view text);
/// A word without its quotes.
std::string unquoted(std::string_view word);

/// Where the commands of a fix run.
struct Shell {
  const owner::PythonEnvironment& python;
  bool windows = false;
  std::string interpreter = {};  ///< of Windows: what starts Python, where the program brings its own
  bool podman = false;           ///< containers are its, and not Docker's
};
/// "pip install X" as `PREFIX/bin/python -m pip install X`; as `uv pip install --python PREFIX X` where the
/// environment has no pip; "conda install X" with --prefix. As the tables have it where no environment is
/// known.
std::string text_of(const Command& command, const Shell& shell);
std::string text_of(const Command& command);

/// The release of Windows in place of one of Linux, where that is the system.
std::string driver_release(std::string_view of_linux, bool windows);
/// " to 525.60.13 or newer"; empty where nothing is known of it.
std::string goal_of(const UpdateDriver& driver, bool windows);
/// "Update the driver to 525.60.13 or newer".
std::string title_of(const UpdateDriver& driver, bool windows);

/// "-gencode arch=compute_75,code=sm_75 ...", "75-real;90", "7.5;9.0+PTX": as the build system wants to be
/// told. Empty where it has no word for any of it.
std::string arch_list(const BuildPlan& plan, data::ArchList style);
/// "12.0f".
std::string dotted(image::Arch arch);

}  // namespace kshim::say
