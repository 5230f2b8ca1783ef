// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/github.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "analyzer/render/render.h"
#include "analyzer/render/share_finding.h"
#include "analyzer/render/source_root.h"
#include "analyzer/text/text.h"

namespace kshim::analysis {
namespace {

constexpr std::size_t kTitleBytes = 240;     // GitHub takes 255 characters
constexpr std::size_t kMessageBytes = 4000;  // and 64 KiB, which nobody reads

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

std::string_view command_of(Severity severity) {
  return severity == Severity::error ? "error" : severity == Severity::warning ? "warning" : "notice";
}

std::string command(const PlacedFinding& placed, const SourceRoot& root) {
  const Finding& finding = placed.finding;
  std::string out = fmt::format("::{} ", command_of(finding.severity));
  // The runner finds the line in the checkout by its path from there.
  if (!placed.place.file.empty())
    out += fmt::format("file={},", escaped(harmless(root.name(placed.place.file).path), true));
  if (placed.place.line != 0) out += fmt::format("line={},", placed.place.line);
  const std::string title = fmt::format("kshim: {}", row_of(finding.cause).headline);
  return out + fmt::format("title={}::{}\n", escaped(clipped(title, kTitleBytes), true),
                           escaped(clipped(message_text(finding), kMessageBytes), false));
}

std::string plain_command(std::string_view kind, std::string_view text) {
  return fmt::format("::{} title=kshim::{}\n", kind, escaped(clipped(harmless(text), kMessageBytes), false));
}

}  // namespace

std::string github_commands(const std::vector<PlacedFinding>& findings,
                            const std::vector<std::string>& warnings, const std::vector<std::string>& notes) {
  std::vector<std::size_t> order(findings.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return findings[a].finding.severity > findings[b].finding.severity;
  });
  const SourceRoot root = SourceRoot::of_process();
  std::string out;
  for (const std::size_t i : order) out += command(findings[i], root);
  for (const std::string& warning : warnings) out += plain_command("warning", warning);
  for (const std::string& note : notes) out += plain_command("notice", note);
  return out;
}

std::string render_github(const Analysis& analysis, const RenderOptions& /*options*/) {
  std::vector<std::string> warnings;
  for (const BlindProcess& process : analysis.blind) {
    warnings.push_back(
        fmt::format("{} (pid {}) was not watched: {}", process.exe, process.pid, process.reason));
  }
  return github_commands(placed(analysis.findings), warnings, analysis.notes);
}

}  // namespace kshim::analysis
