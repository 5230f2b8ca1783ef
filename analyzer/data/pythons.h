// SPDX-License-Identifier: Apache-2.0
// Which releases of a package have a wheel for which Python: pythons.def.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace kshim::analysis {

struct PythonRow {
  std::string_view distribution;
  std::string_view python;  ///< "3.10"
  std::string_view first;
  std::string_view last;  ///< "0" = the newest too
  std::string_view sources;
};
std::span<const PythonRow> pythons();

/// nullptr where the table knows nothing of that project with that Python.
const PythonRow* find_python(std::string_view distribution, std::string_view python);
/// The oldest Python that the release has a wheel for; empty where that is not known.
std::string_view oldest_python(std::string_view distribution, std::string_view release);
/// "3.10" of /usr/bin/python3.10 and of .../lib/python3.10/site-packages/...; empty where the path does not
/// tell.
std::string python_of_path(std::string_view path);

}  // namespace kshim::analysis
