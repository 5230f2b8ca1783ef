// SPDX-License-Identifier: Apache-2.0
// kshim export: what kshim knows, for other systems.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "analyzer/cli/command.h"
#include "analyzer/cli/output.h"
#include "analyzer/cli/progress.h"
#include "analyzer/cli/terminal.h"
#include "analyzer/core/text.h"
#include "analyzer/verbs/requirements.h"
#include "kshim/files/open_file.h"

namespace kshim::cli {
namespace {

struct ExportOptions {
  std::string to;
  std::string output;
  std::string verify;
  std::vector<std::string> paths;
};

const std::vector<std::string> kRequirements = {"nvidia-require", "nfd", "wheel-variant", "conda"};

std::string declared_by(const std::string& text) {
  if (!text.starts_with('@')) return text;
  constexpr std::size_t kMost = 1U << 20;
  const auto content = files::read_whole(text.substr(1), kMost);
  if (!content) throw UserError(fmt::format("--verify {}: cannot be read", analysis::harmless(text)));
  return *content;
}

int export_requirements(const ExportOptions& options, requirements::To to) {
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

std::function<int()> set_up(CLI::App& app) {
  auto options = std::make_shared<ExportOptions>();
  app.add_option("PATH", options->paths, "what kshim scan reads")->required()->group("");
  app.add_option("--to", options->to, fmt::format("for what: {}", fmt::join(kRequirements, ", ")))
      ->type_name("SYSTEM")
      ->required()
      ->check(one_of(kRequirements));
  app.add_option("--verify", options->verify,
                 "hold the files to what is declared (@FILE reads it): 1 where a GPU is promised and nothing "
                 "runs there")
      ->type_name("TEXT");
  app.add_option("-o,--output", options->output, "write there and not to stdout")->type_name("FILE");
  return [options] {
    const auto row = std::find(kRequirements.begin(), kRequirements.end(), options->to);
    return export_requirements(*options, static_cast<requirements::To>(row - kRequirements.begin()));
  };
}

}  // namespace

Command export_command() {
  return {.name = "export",
          .synopsis = "write what files ask of a GPU, for what places them on machines",
          .usage = "[OPTIONS] --to SYSTEM PATH...",
          .details =
              "nvidia-require: the variable by which NVIDIA's container runtime refuses to start an image "
              "(not in CDI mode). nfd: an image compatibility "
              "artifact of Node Feature Discovery. wheel-variant: properties of a wheel variant (PEP 825). "
              "conda: the requirement on __cuda_arch (CEP 46).",
          .example =
              "  kshim export --to nvidia-require image.tar\n"
              "  kshim export --to wheel-variant dist/*.whl\n"
              "  kshim export --to conda --verify \"__cuda_arch >=7.5\" lib/libfoo.so\n",
          .footer =
              "Exit status: 0, 1 where files do not keep what is declared or could not be read whole, 2 "
              "wrong arguments, 3 no device code in what was named.",
          .set_up = set_up};
}

}  // namespace kshim::cli
