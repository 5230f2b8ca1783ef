// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/core/text.h"
#include "analyzer/input/report/report.h"

namespace kshim::diagnose {

/// Stands for the program in our commands.
constexpr std::string_view kProgramWord = "PROGRAM";

/// A command of ours, expanded, with the program's own command line, quoted already, in the place of the word
/// PROGRAM. What is filled in stays as it is.
inline std::string for_program(std::string_view command, std::string_view program,
                               const TemplateWords& words = {}) {
  const std::size_t found = command.find(kProgramWord);
  if (found == std::string_view::npos || program.empty()) return expand_filled(command, words);
  return expand_filled(command, words).empty()
             ? std::string()
             : expand(command.substr(0, found), words).append(program) +
                   expand(command.substr(found + kProgramWord.size()), words);
}

/// A command line for the shell, or nothing where it is too long to be read, or cannot be typed.
std::string command_line(const std::vector<std::string>& arguments);

/// That of a process, or nothing where another program starts such processes: typed by itself, it would wait
/// for a launcher, or end at once.
std::string command_line_of(const ProcessRecord& process);

}  // namespace kshim::diagnose
