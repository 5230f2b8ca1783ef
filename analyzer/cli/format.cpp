// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/format.h"

#include <fmt/core.h>
#include <unistd.h>

#include "analyzer/cli/terminal.h"
#include "analyzer/core/text.h"

namespace kshim::cli {

analysis::Format parse_format(const std::string& name, std::span<const analysis::Format> of, int status) {
  if (const auto format = analysis::parse_format(name, of)) return *format;
  throw UserError(fmt::format("--format: `{}` is not a format; there are {}", analysis::harmless(name),
                              analysis::format_names(of)),
                  status);
}

analysis::RenderOptions render_options(const Output& output, bool verbose, bool full) {
  const bool terminal = output.is_stream() && isatty(STDOUT_FILENO) == 1;
  return {.colour = output.is_stream() && wants_colour(STDOUT_FILENO),
          .unicode = wants_unicode(),
          .width = terminal ? terminal_width(STDOUT_FILENO) : kPageWidth,
          .verbose = verbose,
          .full = full};
}

}  // namespace kshim::cli
