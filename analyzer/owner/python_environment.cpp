// SPDX-License-Identifier: Apache-2.0
#include "analyzer/owner/python_environment.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace kshim::packages {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kMostEntries = 65536;
// They are built for one another: what exchanges one has to exchange all of them that are there.
constexpr std::array<std::string_view, 3> kTogether = {"torch", "torchvision", "torchaudio"};

// ".../lib/python3.11/site-packages" of a file below it; empty where it lies in no such folder.
std::string site_folder(const std::string& file) {
  for (const std::string_view name : {"/site-packages/", "/dist-packages/"}) {
    const std::size_t at = file.find(name);
    if (at != std::string::npos) return file.substr(0, at + name.size() - 1);
  }
  return {};
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// "torch-2.7.1+cu126.dist-info".
void add_installed(const std::string& entry, analysis::PythonEnvironment& out) {
  constexpr std::string_view kInfo = ".dist-info";
  const std::size_t dash = entry.find('-');
  if (dash == std::string::npos || !entry.ends_with(kInfo) || entry.size() < dash + 1 + kInfo.size()) return;
  const std::string name = entry.substr(0, dash);
  if (std::find(kTogether.begin(), kTogether.end(), name) == kTogether.end()) return;
  out.installed.emplace_back(name, entry.substr(dash + 1, entry.size() - dash - 1 - kInfo.size()));
}

}  // namespace

analysis::PythonEnvironment python_environment(const std::string& file, const std::string& prefix,
                                               bool conda) {
  analysis::PythonEnvironment out;
  out.conda = conda;
  const std::string site = site_folder(file);
  if (site.empty()) return out;
  out.prefix = prefix;
  if (prefix.empty()) {
    // PREFIX/lib/python3.11/site-packages: an environment where its own files say so (PEP 405).
    const fs::path folder = fs::path(site).parent_path().parent_path().parent_path();
    if (is_there(folder / "pyvenv.cfg") || is_there(folder / "conda-meta")) out.prefix = folder.string();
  }
  if (out.prefix.empty()) return out;
  out.interpreter = out.prefix + "/bin/python";
  std::error_code error;
  fs::directory_iterator entries(site, fs::directory_options::skip_permission_denied, error);
  if (error) return out;  // another machine's: nothing is known to be missing
  out.has_pip = is_there(fs::path(site) / "pip") || is_there(fs::path(out.prefix) / "bin" / "pip");
  unsigned count = 0;
  for (const fs::directory_iterator end; entries != end && ++count < kMostEntries; entries.increment(error)) {
    if (error) break;
    add_installed(entries->path().filename().string(), out);
  }
  std::sort(out.installed.begin(), out.installed.end(), [](const auto& a, const auto& b) {
    const auto rank = [](const std::string& name) {
      return std::find(kTogether.begin(), kTogether.end(), name) - kTogether.begin();
    };
    return rank(a.first) < rank(b.first);
  });
  return out;
}

}  // namespace kshim::packages
