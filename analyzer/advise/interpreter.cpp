// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/interpreter.h"

#include <fmt/core.h>

#include <array>

#include "analyzer/core/text.h"

namespace kshim::analysis {
namespace {

struct Word {
  std::string_view written;
  bool of_conda = false;
};
// Longer ones first.
constexpr std::array<Word, 6> kWords = {{{"python -m pip install ", false},
                                         {"python -m pip uninstall ", false},
                                         {"pip install ", false},
                                         {"pip uninstall ", false},
                                         {"conda install ", true},
                                         {"conda update ", true}}};

std::string_view verb_of(std::string_view word) {
  word.remove_suffix(1);
  return word.substr(word.rfind(' ') + 1);
}

std::string written_for(const Word& word, const PythonEnvironment& python) {
  const std::string_view verb = verb_of(word.written);
  if (word.of_conda)
    return python.conda ? fmt::format("conda {} --prefix {} ", verb, shell_quote(python.prefix))
                        : std::string(word.written);
  if (!python.has_pip) return fmt::format("uv pip {} --python {} ", verb, shell_quote(python.prefix));
  return fmt::format("{} -m pip {} ", shell_quote(python.interpreter), verb);
}

}  // namespace

std::string for_interpreter(std::string_view command, const PythonEnvironment& python) {
  std::string out;
  if (!python.known()) return std::string(command);
  for (bool begins_word = true; !command.empty();) {
    const Word* found = nullptr;
    for (const Word& word : kWords) {
      if (found == nullptr && begins_word && command.starts_with(word.written)) found = &word;
    }
    if (found != nullptr) {
      const bool names_prefix = command.substr(found->written.size()).starts_with("-p ");
      out += names_prefix ? std::string(found->written) : written_for(*found, python);
      command.remove_prefix(found->written.size());
      continue;
    }
    begins_word = command.front() == ' ' || command.front() == '(';
    out += command.front();
    command.remove_prefix(1);
  }
  return out;
}

void for_interpreter(std::vector<Fix>& fixes, const PythonEnvironment& python) {
  for (Fix& fix : fixes) {
    for (std::string& command : fix.commands) command = for_interpreter(command, python);
  }
}

}  // namespace kshim::analysis
