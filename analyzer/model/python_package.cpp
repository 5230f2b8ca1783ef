// SPDX-License-Identifier: Apache-2.0
#include "analyzer/model/python_package.h"

#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

namespace kshim::analysis {
namespace {

namespace fs = std::filesystem;

struct Place {
  std::string folder;    ///< .../site-packages
  std::string relative;  ///< torch/lib/libtorch_cuda.so
};

std::optional<Place> place_of(const std::string& path) {
  for (const std::string_view marker : {"/site-packages/", "/dist-packages/"}) {
    const std::size_t at = path.rfind(marker);
    if (at != std::string::npos)
      return Place{path.substr(0, at + marker.size() - 1), path.substr(at + marker.size())};
  }
  return std::nullopt;
}

// A line is PATH,HASH,SIZE; a path with a comma is quoted, which no library's path needs.
bool lists(const fs::path& record, const std::string& relative) {
  std::ifstream in(record);
  const std::string begin = relative + ",";
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(begin)) return true;
  }
  return false;
}

}  // namespace

// The headers of METADATA come first and end with an empty line.
PythonPackage read_dist_info(const std::string& folder) {
  PythonPackage out;
  std::ifstream in(fs::path(folder) / "METADATA");
  for (std::string line; std::getline(in, line) && !line.empty();) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.starts_with("Name: ")) out.name = line.substr(6);
    if (line.starts_with("Version: ")) out.version = line.substr(9);
  }
  return out;
}

std::optional<PythonPackage> python_package_of(const std::string& path) {
  const auto place = place_of(path);
  if (!place) return std::nullopt;
  std::error_code error;
  for (fs::directory_iterator entry(place->folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    if (entry->path().extension() != ".dist-info" || !lists(entry->path() / "RECORD", place->relative))
      continue;
    PythonPackage package = read_dist_info(entry->path().string());
    if (!package.name.empty()) return package;
  }
  return std::nullopt;
}

}  // namespace kshim::analysis
