// SPDX-License-Identifier: Apache-2.0
// kshim path: for `LD_PRELOAD=$(kshim path) program`.
#include "analyzer/cli/command.h"
#include "analyzer/cli/self.h"

namespace kshim::cli {
std::function<int()> set_up_path(Arguments&) {
  return [] {
    const Located shim = find_shim();
    if (shim.path.empty())
      throw UserError(fmt::format("libkshim.so is not beside this command; {}", search_of(shim)),
                      exit_status::kNoInput);
    fmt::print("{}\n", shim.path.string());
    return exit_status::kOk;
  };
}

}  // namespace kshim::cli
