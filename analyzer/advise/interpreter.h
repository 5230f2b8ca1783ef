// SPDX-License-Identifier: Apache-2.0
// Commands that install go to the interpreter that failed: the first `pip` of a shell is often another one's.
#pragma once
#include <string>
#include <string_view>

#include "analyzer/core/finding.h"
#include "analyzer/core/python_environment.h"

namespace kshim::analysis {

/// "pip install X" as `PREFIX/bin/python -m pip install X`; as `uv pip install --python PREFIX X` where the
/// environment has no pip; "conda install X" with --prefix. As it is where no environment is known.
std::string for_interpreter(std::string_view command, const PythonEnvironment& python);
void for_interpreter(std::vector<Fix>& fixes, const PythonEnvironment& python);

}  // namespace kshim::analysis
