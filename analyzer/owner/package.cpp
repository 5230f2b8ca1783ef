// SPDX-License-Identifier: Apache-2.0
#include "analyzer/owner/package.h"

#include "analyzer/core/text.h"
#include "analyzer/owner/bounded.h"

namespace kshim::owner {

void read_metadata(std::string_view text, Package& package) {
  each_line(text, [&](std::string_view line) {
    if (line.starts_with("Name: ")) package.name = line.substr(6);
    if (line.starts_with("Version: ")) package.version = line.substr(9);
    return !line.empty();
  });
}

// PEP 508; Debian Policy 5.6.7, with the architecture that dpkg puts behind a name (libfoo:amd64); rpm's and
// conda's names have no other characters.
bool is_package_name(std::string_view text) {
  constexpr std::string_view kMarks = "._+-:";
  return !text.empty() && (core::is_alnum(text.front()) || text.front() == '_') &&
         std::ranges::all_of(text, [&](char c) { return core::is_alnum(c) || core::contains(kMarks, c); });
}

core::PackageName package_name(const Package& package) {
  return {package.name, package.version, package.manager};
}

}  // namespace kshim::owner
