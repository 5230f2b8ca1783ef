// SPDX-License-Identifier: Apache-2.0
// The environment of Python that a file is installed in: which interpreter a fix has to name.
#pragma once
#include <string>

#include "analyzer/core/python_environment.h"

namespace kshim::packages {

/// `file` lies in a folder of installed packages. `prefix` is that of the environment, where it is known;
/// then nothing need be there to look at. `conda`: the package is one of conda's.
analysis::PythonEnvironment python_environment(const std::string& file, const std::string& prefix,
                                               bool conda);

}  // namespace kshim::packages
