// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace kshim::source {

struct SourceLine {
  std::string file;  ///< as the compiler wrote it: mostly absolute; empty where it is not known
  unsigned line = 0;
};

}  // namespace kshim::source
