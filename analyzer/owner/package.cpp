// SPDX-License-Identifier: Apache-2.0
#include "analyzer/owner/package.h"

#include <cctype>

#include "analyzer/core/text.h"
#include "analyzer/owner/bounded.h"

namespace kshim::packages {

void read_metadata(std::string_view text, Package& package) {
  each_line(text, [&](std::string_view line) {
    if (line.starts_with("Name: ")) package.name = line.substr(6);
    if (line.starts_with("Version: ")) package.version = line.substr(9);
    return !line.empty();
  });
}

bool lists_module(const std::vector<std::string>& modules, std::string_view below) {
  return contains(modules, below.substr(0, below.find_first_of("/.")));
}

// PEP 508; Debian Policy 5.6.7, with the architecture that dpkg puts behind a name (libfoo:amd64); rpm's and
// conda's names have no other characters.
bool is_package_name(std::string_view text) {
  const auto plain = [](unsigned char c) { return c < 0x80 && std::isalnum(c) != 0; };
  constexpr std::string_view kMarks = "._+-:";
  return !text.empty() && (plain(static_cast<unsigned char>(text.front())) || text.front() == '_') &&
         std::ranges::all_of(
             text, [&](char c) { return plain(static_cast<unsigned char>(c)) || contains(kMarks, c); });
}

analysis::PackageName package_name(const Package& package) {
  return {package.name, package.version, package.manager};
}

}  // namespace kshim::packages
