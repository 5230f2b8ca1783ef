// SPDX-License-Identifier: Apache-2.0
// kshim path: for `LD_PRELOAD=$(kshim path) program`.
#include "analyzer/cli/command.h"
#include "analyzer/cli/self.h"

namespace kshim::cli {
std::function<int()> set_up_path(Arguments&) {
  return [] {
    fmt::print("{}\n", shim_or_refuse().string());
    return core::exit_status::kOk;
  };
}

}  // namespace kshim::cli
