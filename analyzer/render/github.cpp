// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/github.h"

#include <fmt/core.h>

#include "analyzer/core/text.h"
#include "analyzer/render/finding_text.h"
#include "analyzer/render/render.h"

namespace kshim::analysis {
namespace {

constexpr std::size_t kTitleBytes = 240;     // GitHub takes 255 characters
constexpr std::size_t kMessageBytes = 4000;  // and 64 KiB, which nobody reads
constexpr std::size_t kShown = 10;           // annotations of one kind that GitHub shows of a step

// The runner takes these apart at line ends and, in properties, at colons and commas.
std::string escaped(std::string_view text, bool property) {
  std::string out;
  for (const char c : text) {
    const bool special = c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ','));
    if (special) {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out;
}

constexpr std::array kCommands = {"error", "warning", "notice"};
std::size_t kind_of(Severity severity) {
  return severity == Severity::error ? 0 : severity == Severity::warning ? 1 : 2;
}

void add_finding(const PlacedFinding& placed, const SourceRoot& root, GithubCommands& commands) {
  const Finding& finding = placed.finding;
  std::string properties;
  std::string message = message_text(finding);
  // The runner finds a line in the checkout by its path from there. A file outside of it has no page to show
  // it on, and is named in words.
  const SourceRoot::Named name = root.name(placed.place.file);
  if (name.inside) {
    properties = fmt::format("file={},", escaped(harmless(name.path), true));
    if (placed.place.line != 0) properties += fmt::format("line={},", placed.place.line);
  } else if (!placed.place.file.empty()) {
    message += "\nFile: " + harmless(name.path);
    if (placed.place.line != 0) message += fmt::format(":{}", placed.place.line);
  }
  commands.add(finding.severity, fmt::format("kshim: {}", row_of(finding.cause).headline), message,
               properties);
}

}  // namespace

void GithubCommands::add(Severity severity, std::string_view title, std::string_view text,
                         std::string_view properties) {
  const std::size_t kind = kind_of(severity);
  commands_.at(kind).push_back(fmt::format("::{} {}title={}::{}\n", kCommands.at(kind), properties,
                                           escaped(clipped(harmless(title), kTitleBytes), true),
                                           escaped(clipped(harmless_lines(text), kMessageBytes), false)));
}

std::string GithubCommands::text() const {
  std::string out;
  for (std::size_t kind = 0; kind < commands_.size(); ++kind) {
    const auto& commands = commands_.at(kind);
    const std::size_t shown = commands.size() <= kShown ? commands.size() : kShown - 1;
    for (std::size_t i = 0; i < shown; ++i) out += commands[i];
    if (shown == commands.size()) continue;
    out += fmt::format(
        "::{} title=kshim::and {} more: GitHub shows {} of a kind. All of them: --format markdown -o "
        "\"$GITHUB_STEP_SUMMARY\"\n",
        kCommands.at(kind), commands.size() - shown, kShown);
  }
  return out;
}

std::string github_commands(const std::vector<PlacedFinding>& findings, const SourceRoot& root,
                            const std::vector<std::string>& warnings, const std::vector<std::string>& notes) {
  GithubCommands commands;
  for (const PlacedFinding& finding : findings) add_finding(finding, root, commands);
  for (const std::string& warning : warnings) commands.add(Severity::warning, "kshim", harmless(warning));
  for (const std::string& note : notes) commands.add(Severity::info, "kshim", harmless(note));
  return commands.text();
}

std::string render_github(const Analysis& analysis, Format, const RenderOptions&) {
  std::vector<std::string> warnings;
  for (const BlindProcess& process : analysis.blind) {
    warnings.push_back(
        fmt::format("{} (pid {}) was not watched: {}", process.exe, process.pid, process.reason));
  }
  const SourceRoot root = SourceRoot::of_process();
  return github_commands(placed(analysis.findings, root, {}), root, warnings, analysis.notes);
}

}  // namespace kshim::analysis
