// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/export_requirements.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "analyzer/cli/command.h"
#include "analyzer/cli/output.h"
#include "analyzer/cli/progress.h"
#include "analyzer/cli/terminal.h"
#include "analyzer/core/text.h"
#include "analyzer/verbs/requirements.h"
#include "kshim/files/open_file.h"

namespace kshim::cli {
namespace {

std::string declared_by(const std::string& text) {
  if (!text.starts_with('@')) return text;
  constexpr std::size_t kMost = 1U << 20;
  const auto content = files::read_whole(text.substr(1), kMost);
  if (!content) throw UserError(fmt::format("--verify {}: cannot be read", analysis::harmless(text)));
  return *content;
}

}  // namespace

std::vector<std::string> requirement_names() { return {"nvidia-require", "nfd", "wheel-variant", "conda"}; }

int export_requirements(const RequirementOptions& options) {
  const std::vector<std::string> names = requirement_names();
  const auto to =
      static_cast<requirements::To>(std::find(names.begin(), names.end(), options.to) - names.begin());
  Output output(options.output, STDOUT_FILENO, exit_status::kMisuse);
  scan::Options wanted;
  wanted.targets = requirements::known_gpus();
  scan::Scan found;
  {
    ProgressBar bar("scanning");
    wanted.progress = [&bar](std::uint64_t done, std::uint64_t total) { bar.update(done, total); };
    found = scan::scan({options.paths.begin(), options.paths.end()}, wanted);
  }
  print_errors(found.notes, false);
  if (found.objects.empty())
    throw UserError("there is no device code in what was named", exit_status::kNoInput);
  const requirements::Served served = requirements::served_by(found);
  if (options.verify.empty()) {
    output.write(requirements::text_of(served, to));
    return found.named_unread ? exit_status::kFindings : exit_status::kOk;
  }
  const requirements::Difference difference = requirements::verify(served, to, declared_by(options.verify));
  std::string text;
  if (!difference.broken.empty())
    text += fmt::format("error: promised and not there: {}\n", fmt::join(difference.broken, ", "));
  if (!difference.unused.empty())
    text += fmt::format("note: there and not promised: {}\n", fmt::join(difference.unused, ", "));
  output.write(text.empty() ? "ok: the files have what is declared\n" : text);
  return difference.broken.empty() && !found.named_unread ? exit_status::kOk : exit_status::kFindings;
}

}  // namespace kshim::cli
