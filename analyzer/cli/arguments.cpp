// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/arguments.h"

#include <unistd.h>

#include "analyzer/cli/terminal.h"
#include "analyzer/core/text.h"
#include "analyzer/data/gpu_names.h"
#include "analyzer/data/knowledge.h"
#include "kshim/image/compute_capability.h"

namespace kshim::cli {
using core::UserError;

namespace {

// The architectures of a text that has nothing else between its spaces; none in an empty one.
std::optional<std::vector<image::Arch>> archs_in(std::string_view text) {
  std::vector<image::Arch> out;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (word.empty()) continue;
    const auto arch = image::parse_arch(word);
    if (!arch || image::find_compute_capability(arch->cc) == nullptr) return std::nullopt;
    out.push_back(*arch);
  }
  return out;
}

}  // namespace

std::vector<image::Arch> parse_archs(std::string_view option, const std::vector<std::string>& texts,
                                     int status) {
  std::vector<image::Arch> archs;
  for (const std::string& text : texts) {
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find_first_of(",;", begin), text.size());
      const std::string_view item = std::string_view(text).substr(begin, end - begin);
      begin = end + 1;
      // "8.6 9.0" are two, "RTX 5090" is one.
      if (const auto several = archs_in(item)) {
        archs.insert(archs.end(), several->begin(), several->end());
        continue;
      }
      try {
        archs.push_back({data::choose_gpu(item).cc, image::Suffix::none});
      } catch (const data::UnknownGpu& error) {
        throw UserError(fmt::format("{}: {}", option, error.what()), status);
      }
    }
  }
  // An empty variable in a script, most likely: what was to be checked would go unchecked.
  if (archs.empty() && !texts.empty())
    throw UserError(fmt::format("{}: names no architecture; give one such as sm_86 or 8.6", option), status);
  return archs;
}

image::ComputeCapability parse_cc(std::string_view option, const std::string& text) {
  const auto archs = parse_archs(option, {text});
  if (archs.size() != 1 || archs.front().suffix != image::Suffix::none) {
    throw UserError(fmt::format("{}: `{}` is not one compute capability; write it as in 8.6", option,
                                core::sanitize(text)));
  }
  return archs.front().cc;
}

std::filesystem::path parse_root(const std::string& name) {
  std::error_code error;
  const std::filesystem::path root = std::filesystem::canonical(name, error);
  if (error || !std::filesystem::is_directory(root, error))
    throw UserError(fmt::format("--root {}: is not a folder", core::sanitize(name)));
  return root;
}

render::RenderOptions render_options(const Output& output, const Written& written) {
  const bool terminal = output.is_stream() && isatty(STDOUT_FILENO) == 1;
  return {.color = output.is_stream() && wants_color(STDOUT_FILENO),
          .unicode = wants_unicode(),
          .width = terminal ? terminal_width(STDOUT_FILENO) : kPageWidth,
          .verbose = written.verbose,
          .full = written.full};
}

}  // namespace kshim::cli
