// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace kshim::analysis {

struct CommandLine {
  std::string text;
  bool continues = false;  ///< the line before it ended with a backslash
};

/// A shell command broken into lines of at most `width` columns where words allow it: behind `&&`, else with
/// a backslash, best before an option. Pasted, the lines are the command again. A line that continues is
/// `hang` columns narrower.
std::vector<CommandLine> break_command(std::string_view command, std::size_t width, std::size_t hang);

}  // namespace kshim::analysis
