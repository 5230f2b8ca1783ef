// SPDX-License-Identifier: Apache-2.0
// Layouts: packaging.python.org, "Recording installed projects" and "Binary distribution format".
#include "analyzer/scan/distributions.h"

#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "analyzer/model/python_package.h"
#include "analyzer/text/text.h"

namespace kshim::scan {
namespace {

namespace fs = std::filesystem;

const std::string kNone;
// A hostile RECORD is not read for ever; the largest real ones (torch, tensorflow) have 20,000 lines.
constexpr std::size_t kMostLines = 1'000'000;

/// The path of a RECORD line: PATH,HASH,SIZE, in quotes where it holds a comma.
std::string path_of(const std::string& line) {
  if (!line.starts_with('"')) return line.substr(0, line.find(','));
  std::string out;
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (line[i] != '"') {
      out += line[i];
    } else if (i + 1 < line.size() && line[i + 1] == '"') {
      out += line[i++];
    } else {
      break;
    }
  }
  return out;
}

}  // namespace

const std::string& Distributions::of(const std::string& path) {
  for (const std::string_view marker : {"/site-packages/", "/dist-packages/"}) {
    const std::size_t at = path.rfind(marker);
    if (at == std::string::npos) continue;
    const Records& records = records_of(path.substr(0, at + marker.size() - 1));
    const auto found = records.find(path.substr(at + marker.size()));
    return found == records.end() ? kNone : found->second;
  }
  return kNone;
}

const Distributions::Records& Distributions::records_of(const std::string& folder) {
  const auto [at, added] = folders_.try_emplace(folder);
  if (!added) return at->second;
  Records& records = at->second;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    if (entry->path().extension() != ".dist-info") continue;
    const auto package = analysis::read_dist_info(entry->path().string());
    const std::string name = package.version.empty() ? package.name : package.name + " " + package.version;
    std::ifstream record(entry->path() / "RECORD");
    std::size_t left = kMostLines;
    for (std::string line; left-- != 0 && std::getline(record, line);) {
      // Only what may hold device code: the rest of the lines would be most of the memory.
      std::string file = path_of(line);
      if (!file.ends_with(".py") && !file.ends_with(".pyc") && !file.ends_with(".h"))
        records.emplace(file, name);
    }
  }
  return records;
}

std::string distribution_of_wheel(std::string_view path) {
  const std::string_view name = analysis::basename_of(path);
  if (!name.ends_with(".whl")) return {};
  const std::size_t first = name.find('-');
  if (first == std::string_view::npos) return {};
  const std::size_t second = name.find('-', first + 1);
  if (second == std::string_view::npos) return {};
  return std::string(name.substr(0, first)) + " " + std::string(name.substr(first + 1, second - first - 1));
}

}  // namespace kshim::scan
