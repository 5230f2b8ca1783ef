// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/export_requirements.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <tuple>

#include "analyzer/cli/command.h"
#include "analyzer/cli/output.h"
#include "analyzer/cli/progress.h"
#include "analyzer/cli/terminal.h"
#include "analyzer/core/text.h"
#include "analyzer/verbs/requirements.h"
#include "kshim/files/open_file.h"

namespace kshim::cli {
namespace {

/// `unread` becomes true where a file could not be read whole.
requirements::Served served_by(const std::vector<std::string>& paths, bool& unread) {
  scan::Options wanted;
  wanted.targets = requirements::known_gpus();
  scan::Scan found;
  {
    ProgressBar bar("scanning");
    wanted.progress = [&bar](std::uint64_t done, std::uint64_t total) { bar.update(done, total); };
    found = scan::scan({paths.begin(), paths.end()}, wanted);
  }
  print_errors(found.notes, false);
  if (found.objects.empty())
    throw UserError("there is no device code in what was named", exit_status::kNoInput);
  unread = unread || found.named_unread;
  return requirements::served_by(found);
}

std::string declared_text(const std::string& text) {
  if (!text.starts_with('@')) return text;
  constexpr std::size_t kMost = 1U << 20;
  const auto content = files::read_whole(text.substr(1), kMost);
  if (!content) throw UserError(fmt::format("--declared {}: cannot be read", analysis::harmless(text)));
  return *content;
}

/// A line for what is kept, and one for each difference. Whether all is kept.
bool compare(const requirements::Served& served, const requirements::Declaration& declared,
             std::string& text) {
  const requirements::Difference difference = requirements::verify(served, declared);
  const std::string what =
      analysis::harmless(fmt::format("{} ({})", declared.source, fmt::join(declared.conditions, ", ")));
  if (difference.broken.empty()) text += fmt::format("ok: {}: the files have what is declared\n", what);
  for (const auto& [word, is, list] : {std::tuple("error", "promised and not there", &difference.broken),
                                       std::tuple("note", "there and not promised", &difference.unused)})
    if (!list->empty())
      text += fmt::format("{}: {}: {}: {}\n", word, what, is,
                          analysis::harmless(fmt::format("{}", fmt::join(*list, ", "))));
  return difference.broken.empty();
}

}  // namespace

std::vector<std::string> requirement_names() { return {"nvidia-require", "nfd", "wheel-variant", "conda"}; }

int export_requirements(const RequirementOptions& options) {
  using requirements::To;
  const std::vector<std::string> names = requirement_names();
  std::optional<To> to;
  if (!options.to.empty())
    to = static_cast<To>(std::find(names.begin(), names.end(), options.to) - names.begin());
  if (options.declared && !to) throw UserError("--declared: is of which system? Give --to SYSTEM");
  Output output(options.output, STDOUT_FILENO, exit_status::kMisuse);
  bool unread = false;
  bool kept = true;
  std::string text;
  if (options.declared) {
    const auto declared = requirements::declaration_of(*to, declared_text(*options.declared));
    kept = compare(served_by(options.paths, unread), declared, text);
  } else if (!options.verify) {
    text = requirements::text_of(served_by(options.paths, unread), *to);
  } else {
    // Each by itself: one wheel does not keep what another promises.
    for (const std::string& path : options.paths) {
      auto declared = requirements::declared_by(path);
      if (to) std::erase_if(declared, [&](const auto& each) { return each.to != *to; });
      if (declared.empty())
        throw UserError(
            fmt::format("--verify {}: declares nothing on GPUs (a wheel's variant.json, a conda package's "
                        "__cuda_arch, an image's NVIDIA_REQUIRE_*); --to SYSTEM --declared TEXT says what is "
                        "promised",
                        analysis::harmless(path)),
            exit_status::kNoInput);
      const requirements::Served served = served_by({path}, unread);
      for (const requirements::Declaration& each : declared) kept = compare(served, each, text) && kept;
    }
  }
  output.write(text);
  return kept && !unread ? exit_status::kOk : exit_status::kFindings;
}

}  // namespace kshim::cli
