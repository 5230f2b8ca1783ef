// SPDX-License-Identifier: Apache-2.0
#include "analyzer/fixes/own_source.h"

#include <fmt/core.h>

#include <array>
#include <vector>

#include "analyzer/packages/direct_url.h"
#include "analyzer/text/text.h"

namespace kshim::analysis {
namespace {

constexpr std::string_view kEditable = "-e ";
constexpr std::string_view kPip = "pip install ";
// How a recipe's caveat begins where it tells where to run the command.
constexpr std::array<std::string_view, 3> kWhere = {"run it in ", "where pip finds no source",
                                                    "the source package is "};

std::string quoted(std::string_view source) {
  if (!source.starts_with(kEditable)) return shell_quote(source);
  return std::string(kEditable) + shell_quote(source.substr(kEditable.size()));
}

std::string install(std::string_view what) {
  return fmt::format("{}--no-build-isolation --no-cache-dir --force-reinstall --no-deps {}", kPip, what);
}

}  // namespace

std::string install_from(std::string_view source) { return install(quoted(source)); }

std::string build_from(std::string command, std::string_view source) {
  const std::size_t pip = command.rfind(kPip);
  if (pip == std::string::npos) return command;
  const std::string before = command.substr(0, pip);
  const std::string folder = packages::folder_of_source(source);
  if (before.find("&& ") == std::string::npos) return before + install_from(source);
  if (folder.empty()) return command;
  return fmt::format("cd {} && {}{}", shell_quote(folder), before,
                     install(source.starts_with(kEditable) ? "-e ." : "."));
}

std::string caveat_from(std::string_view caveat, std::string_view source) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < caveat.size();) {
    const std::size_t end = std::min(caveat.find("; ", at), caveat.size());
    const std::string_view part = caveat.substr(at, end - at);
    bool where = false;
    for (const std::string_view begin : kWhere) where = where || part.starts_with(begin);
    if (!where) parts.emplace_back(part);
    at = end + 2;
  }
  if (!packages::folder_of_source(source).empty())
    parts.emplace_back(
        "what an earlier build left in that folder (build/, where it holds no sources) may pass for up to "
        "date: delete it first");
  return join(parts, "; ");
}

}  // namespace kshim::analysis
