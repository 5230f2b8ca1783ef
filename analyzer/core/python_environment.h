// SPDX-License-Identifier: Apache-2.0
// The Python that a package is installed for: a fix has to go there, and not to the `pip` that the shell
// finds first.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace kshim::analysis {

struct PythonEnvironment {
  std::string prefix;       ///< of the virtual or conda environment; empty = not known
  std::string interpreter;  ///< its python, by path
  bool has_pip = true;
  bool conda = false;
  std::vector<std::pair<std::string, std::string>> installed;  ///< name and version of PyTorch's packages
  bool known() const { return !interpreter.empty(); }
};

}  // namespace kshim::analysis
