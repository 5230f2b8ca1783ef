// SPDX-License-Identifier: Apache-2.0
// kshim path: for `LD_PRELOAD=$(kshim path) program`.
#include "analyzer/cli/command.h"
#include "analyzer/cli/self.h"

namespace kshim::cli {
namespace {

int print_path() {
  const Located shim = find_shim();
  if (shim.path.empty()) {
    throw UserError(fmt::format("libkshim.so is not beside this command; {}", search_of(shim)),
                    exit_status::kNoInput);
  }
  fmt::print("{}\n", shim.path.string());
  return exit_status::kOk;
}

}  // namespace

Command path_command() {
  return {.name = "path",
          .synopsis = "print the path of libkshim.so, for LD_PRELOAD",
          .usage = "",
          .details =
              "Prints the path of libkshim.so. Preload it to record without `kshim run`; the reports go to "
              "kshim-report/ in the working directory.",
          .example = "  LD_PRELOAD=$(kshim path) python train.py\n",
          .footer = "",
          .set_up = [](CLI::App&) -> std::function<int()> { return print_path; }};
}

}  // namespace kshim::cli
