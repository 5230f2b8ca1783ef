// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/github.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "analyzer/render/render.h"
#include "analyzer/render/share_finding.h"
#include "analyzer/text/text.h"

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

constexpr std::array kKinds = {"error", "warning", "notice"};
std::size_t kind_of(Severity severity) {
  return severity == Severity::error ? 0 : severity == Severity::warning ? 1 : 2;
}

std::string title_of_cause(const Finding& finding) {
  return fmt::format("kshim: {}", row_of(finding.cause).headline);
}

std::string command(const PlacedFinding& placed, const SourceRoot& root) {
  const Finding& finding = placed.finding;
  std::string out;
  std::string message = message_text(finding);
  // The runner finds a line in the checkout by its path from there. A file outside of it has no page to show
  // it on, and is named in words.
  const SourceRoot::Named name = root.name(placed.place.file);
  if (name.inside) {
    out = fmt::format("file={},", escaped(harmless(name.path), true));
    if (placed.place.line != 0) out += fmt::format("line={},", placed.place.line);
  } else if (!placed.place.file.empty()) {
    message += "\nFile: " + harmless(name.path);
    if (placed.place.line != 0) message += fmt::format(":{}", placed.place.line);
  }
  return fmt::format("::{} {}title={}::{}\n", kKinds.at(kind_of(finding.severity)), out,
                     escaped(clipped(title_of_cause(finding), kTitleBytes), true),
                     escaped(clipped(message, kMessageBytes), false));
}

std::string plain_command(std::string_view kind, std::string_view text) {
  return fmt::format("::{} title=kshim::{}\n", kind, escaped(clipped(harmless(text), kMessageBytes), false));
}

void append(std::string& out, std::size_t kind, const std::vector<std::string>& commands) {
  const std::size_t shown = commands.size() <= kShown ? commands.size() : kShown - 1;
  for (std::size_t i = 0; i < shown; ++i) out += commands[i];
  if (shown == commands.size()) return;
  out +=
      plain_command(kKinds.at(kind),
                    fmt::format("and {} more: GitHub shows {} of a kind. All of them: --format markdown -o "
                                "\"$GITHUB_STEP_SUMMARY\"",
                                commands.size() - shown, kShown));
}

}  // namespace

std::string github_commands(const std::vector<PlacedFinding>& findings, const SourceRoot& root,
                            const std::vector<std::string>& warnings, const std::vector<std::string>& notes) {
  std::array<std::vector<std::string>, kKinds.size()> commands;
  for (const PlacedFinding& finding : findings)
    commands.at(kind_of(finding.finding.severity)).push_back(command(finding, root));
  for (const std::string& warning : warnings) commands.at(1).push_back(plain_command("warning", warning));
  for (const std::string& note : notes) commands.at(2).push_back(plain_command("notice", note));
  std::string out;
  for (std::size_t kind = 0; kind < commands.size(); ++kind) append(out, kind, commands.at(kind));
  return out;
}

std::string render_github(const Analysis& analysis, const RenderOptions& /*options*/) {
  std::vector<std::string> warnings;
  for (const BlindProcess& process : analysis.blind) {
    warnings.push_back(
        fmt::format("{} (pid {}) was not watched: {}", process.exe, process.pid, process.reason));
  }
  const SourceRoot root = SourceRoot::of_process();
  return github_commands(placed(analysis.findings, root, {}), root, warnings, analysis.notes);
}

}  // namespace kshim::analysis
