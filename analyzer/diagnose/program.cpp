// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/program.h"

#include "analyzer/core/text.h"
#include "analyzer/data/tables.h"

namespace kshim::diagnose {

std::string command_line(const std::vector<std::string>& arguments) {
  constexpr std::size_t kMax = 120;
  std::string out;
  for (const std::string& argument : arguments) {
    const bool typed = std::ranges::all_of(
        argument, [](char c) { return static_cast<unsigned char>(c) >= ' ' && c != '\x7f'; });
    // What the shim has hidden cannot be typed.
    if (!typed || core::contains(argument, report::kHidden)) return {};
    // The first word of a command may be no assignment.
    const bool first = out.empty();
    if (first && (argument.empty() || core::contains(argument, '='))) return {};
    const std::string word = core::shell_quote(argument);
    if (word.front() == core::kNoShellWord) return {};
    out += (first ? "" : " ") + word;
    if (out.size() > kMax) return {};
  }
  return out;
}

std::string command_line_of(const input::ProcessRecord& process) {
  const bool worker = std::ranges::any_of(process.argv, [&](const std::string& argument) {
    return std::ranges::any_of(
        data::workers(), [&](const data::WorkerRow& row) { return core::contains(argument, row.word); });
  });
  return worker || process.rank ? std::string() : command_line(process.argv);
}

}  // namespace kshim::diagnose
