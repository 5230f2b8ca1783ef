// SPDX-License-Identifier: Apache-2.0
#include "analyzer/architectures.h"

#include <fmt/core.h>

#include <algorithm>

#include "analyzer/knowledge/knowledge.h"
#include "analyzer/text/text.h"
#include "analyzer/user_error.h"
#include "kshim/image/compute_capability.h"

namespace kshim::cli {
namespace {

std::string known_archs() {
  const auto rows = analysis::gpus();
  return fmt::format("kshim knows those from {} to {}", image::to_name(rows.front().cc).view(),
                     image::to_name(rows.back().cc).view());
}

}  // namespace

std::vector<image::Arch> parse_archs(std::string_view option, const std::vector<std::string>& texts,
                                     int status) {
  std::vector<image::Arch> archs;
  for (const std::string& text : texts) {
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find_first_of(",; ", begin), text.size());
      const std::string name = text.substr(begin, end - begin);
      begin = end + 1;
      if (name.empty()) continue;
      const auto arch = image::parse_arch(name);
      if (!arch.ok() || image::find_compute_capability(arch.value().cc) == nullptr) {
        throw UserError(fmt::format("{}: `{}` is not an architecture; give one such as sm_86 or 8.6 ({})",
                                    option, analysis::harmless(name), known_archs()),
                        status);
      }
      archs.push_back(arch.value());
    }
  }
  // An empty variable in a script, most likely: what was to be checked would go unchecked.
  if (archs.empty() && !texts.empty())
    throw UserError(fmt::format("{}: names no architecture; give one such as sm_86 or 8.6", option), status);
  return archs;
}

image::Version parse_cuda_version(std::string_view option, const std::string& text) {
  const auto version = image::parse_version(text);
  if (!version.ok()) {
    throw UserError(
        fmt::format("{}: `{}` is no CUDA version; write it as in 12.4", option, analysis::harmless(text)));
  }
  return version.value();
}

}  // namespace kshim::cli
