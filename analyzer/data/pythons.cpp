// SPDX-License-Identifier: Apache-2.0
#include "analyzer/data/pythons.h"

#include <algorithm>

#include "analyzer/data/knowledge_file.h"
#include "analyzer/data/wheels.h"

namespace kshim::analysis {
std::span<const PythonRow> pythons() { return knowledge().pythons; }

const PythonRow* find_python(std::string_view distribution, std::string_view python) {
  const auto rows = pythons();
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const PythonRow& row) {
    return row.distribution == distribution && row.python == python;
  });
  return found == rows.end() ? nullptr : &*found;
}

std::string_view oldest_python(std::string_view distribution, std::string_view release) {
  std::string_view out;
  for (const PythonRow& row : pythons()) {
    if (row.distribution != distribution || !is_within(release, row.first, row.last)) continue;
    if (out.empty() || compare_releases(row.python, out) < 0) out = row.python;
  }
  return out;
}

std::string python_of_path(std::string_view path) {
  constexpr std::string_view kWord = "/python3.";
  constexpr std::size_t kMostDigits = 2;
  for (std::size_t at = path.rfind(kWord); at != std::string_view::npos;
       at = at == 0 ? std::string_view::npos : path.rfind(kWord, at - 1)) {
    const std::string_view rest = path.substr(at + kWord.size());
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    const bool ends = digits == rest.size() || rest[digits] == '/';
    if (ends && digits != 0 && digits <= kMostDigits) return "3." + std::string(rest.substr(0, digits));
  }
  return {};
}

}  // namespace kshim::analysis
