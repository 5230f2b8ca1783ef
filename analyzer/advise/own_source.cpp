// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/own_source.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <vector>

#include "analyzer/core/text.h"
#include "analyzer/owner/direct_url.h"

namespace kshim::analysis {
namespace {

using packages::kEditable;
constexpr std::string_view kPip = "pip install ";
constexpr std::string_view kNoIsolation = "--no-build-isolation ";
// How a recipe's caveat begins where it tells where to run the command.
constexpr std::array<std::string_view, 3> kWhere = {"run it in ", "where pip finds no source",
                                                    "the source package is "};

std::string quoted(std::string_view source) {
  if (!source.starts_with(kEditable)) return shell_quote(source);
  return std::string(kEditable) + shell_quote(source.substr(kEditable.size()));
}

std::string install(std::string_view what, bool isolated) {
  return fmt::format("{}{}--no-cache-dir --force-reinstall --no-deps {}", kPip, isolated ? "" : kNoIsolation,
                     what);
}

}  // namespace

std::string install_from(std::string_view source) { return install(quoted(source), true); }

OwnBuild build_from(std::string_view source, std::string command, std::string_view caveat) {
  std::vector<std::string> parts;
  bool in_checkout = false;
  for (std::size_t at = 0; at < caveat.size();) {
    const std::size_t end = std::min(caveat.find("; ", at), caveat.size());
    const std::string_view part = caveat.substr(at, end - at);
    const bool where = std::any_of(kWhere.begin(), kWhere.end(),
                                   [&](std::string_view begin) { return part.starts_with(begin); });
    in_checkout = in_checkout || where;
    if (!where) parts.emplace_back(part);
    at = end + 2;
  }
  const std::string folder = packages::folder_of_source(source);
  const std::size_t pip = command.rfind(kPip);
  const std::string before = command.substr(0, pip == std::string::npos ? 0 : pip);
  const bool steps = pip == std::string::npos || before.find("&& ") != std::string::npos;
  if (steps && (folder.empty() || !in_checkout)) return {std::move(command), std::string(caveat)};
  // Some recipes let pip fetch what builds the package.
  const bool isolated = pip != std::string::npos && command.find(kNoIsolation, pip) == std::string::npos;
  if (!steps) {
    command = before + install(quoted(source), isolated);
  } else if (pip == std::string::npos) {
    command = fmt::format("cd {} && {}", shell_quote(folder), command);
  } else {
    const bool editable = source.starts_with(kEditable);
    command =
        fmt::format("cd {} && {}{}", shell_quote(folder), before, install(editable ? "-e ." : ".", isolated));
  }
  if (!folder.empty())
    parts.emplace_back(
        "what an earlier build left in that folder (build/, where it holds no sources) may pass for up to "
        "date: delete it first");
  return {std::move(command), join(parts, "; ")};
}

}  // namespace kshim::analysis
