// SPDX-License-Identifier: Apache-2.0
#include "analyzer/data/cuda_versions.h"

#include "analyzer/core/text.h"
#include "analyzer/data/knowledge.h"

namespace kshim::data {
namespace {

std::string known_toolkits() {
  const auto rows = toolkits();
  return fmt::format("kshim knows those from {} to {}", name(rows.front().version),
                     name(rows.back().version));
}

// A release that this kshim is too old to have a row for is taken, up to the next major version.
bool is_plausible(image::Version version) {
  constexpr unsigned kMaxMinor = 9;
  const auto rows = toolkits();
  return version >= rows.front().version && version.major <= rows.back().version.major + 1 &&
         version.minor <= kMaxMinor;
}

// 580, R580, 580.82.07: the branch of a driver. CUDA versions have one or two digits before the point.
std::optional<unsigned> branch_in(std::string_view text) {
  constexpr unsigned kFirst = 300;
  constexpr unsigned kLast = 999;
  if (!text.empty() && (text.front() == 'R' || text.front() == 'r')) text.remove_prefix(1);
  const auto branch = core::take_number<unsigned>(text);
  if (!branch || *branch < kFirst || *branch > kLast) return std::nullopt;
  const bool numbers = text.find_first_not_of(".0123456789") == std::string_view::npos;
  if (!numbers || (!text.empty() && text.front() != '.')) return std::nullopt;
  return branch;
}

}  // namespace

image::Version parse_cuda_version(std::string_view option, const std::string& text, int status) {
  const auto version = image::parse_version(text);
  if (!version.ok()) {
    throw core::UserError(
        fmt::format("{}: `{}` is no CUDA version; write it as in 12.4", option, core::sanitize(text)),
        status);
  }
  if (!is_plausible(version.value())) {
    throw core::UserError(fmt::format("{}: there is no CUDA {}; {}, give one such as 12.4", option,
                                      name(version.value()), known_toolkits()),
                          status);
  }
  return version.value();
}

image::Version parse_driver(std::string_view option, const std::string& text, int status) {
  const auto branch = branch_in(text);
  if (!branch) return parse_cuda_version(option, text, status);
  const ToolkitRow* row = toolkit_of_branch(*branch);
  if (row == nullptr) {
    throw core::UserError(
        fmt::format("{}: `{}` is a driver's version, and kshim does not know what R{} serves; give "
                    "the CUDA version that nvidia-smi shows, such as 12.4",
                    option, core::sanitize(text), *branch),
        status);
  }
  return row->version;
}

}  // namespace kshim::data
