// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/sarif.h"

#include <fmt/core.h>

#include <algorithm>

#include "analyzer/core/text.h"
#include "analyzer/render/finding_page.h"
#include "analyzer/render/finding_text.h"
#include "analyzer/render/json_finding.h"
#include "analyzer/render/markdown_page.h"
#include "analyzer/render/render.h"
#include "kshim/base/hash.h"
#include "kshim/version.h"

namespace kshim::analysis {
namespace {

constexpr std::size_t kShownKernels = 20;
// What GitHub takes of one run: https://docs.github.com/en/code-security/reference/code-scanning/sarif-files.
// A log with more results, or one of more than 10 MB packed, is refused as a whole.
constexpr std::size_t kResults = 25'000;
constexpr std::size_t kWhole = 1000;          // results that carry all of their finding
constexpr const char* kRootId = "%SRCROOT%";  // the name that GitHub and the standard's examples know
// Files elsewhere on the machine. A URI with a scheme would have GitHub refuse the log.
constexpr const char* kMachineId = "%MACHINE%";

const char* level_of(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::warning:
      return "warning";
    case Severity::info:
      return "note";
    case Severity::none:
      break;
  }
  return "none";
}

Json text_json(const std::string& text) { return {{"text", text}}; }

// "no-image-for-arch" as NoImageForArch.
std::string rule_name(std::string_view id) {
  std::string out;
  bool upper = true;
  for (const char c : id) {
    if (c != '-') out += upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    upper = c == '-';
  }
  return out;
}

Json rule_json(const CauseRow& row) {
  const std::string when = as_sentence(std::string(row.when));
  const std::string more =
      "Each result names the commands that repair it, best first, and what will not help.";
  Json out = {{"id", row.name},
              {"name", rule_name(row.name)},
              {"shortDescription", text_json(as_sentence(std::string(row.headline)))},
              {"fullDescription", text_json(when)}};
  MarkdownPage page(true);
  page.paragraph({{when + " " + more}});
  page.paragraph({{"In a terminal: "},
                  {"kshim analyze", Tone::code},
                  {" of the report, or "},
                  {"kshim scan --target ARCHS", Tone::code},
                  {" of the file."}});
  out["help"] = {{"text", when + " " + more}, {"markdown", std::move(page).take()}};
  out["defaultConfiguration"] = {{"level", level_of(row.severity)}};
  // What GitHub sorts and filters by.
  out["properties"] = {{"tags", {"cuda", "gpu", "compatibility"}},
                       {"precision", row.cause == Cause::unknown ? "low" : "high"},
                       {"problem.severity", row.severity == Severity::error     ? "error"
                                            : row.severity == Severity::warning ? "warning"
                                                                                : "recommendation"}};
  return out;
}

Json artifact_json(const std::string& file, const SourceRoot& root) {
  const SourceRoot::Named name = root.name(file);
  if (name.inside) return {{"uri", file_uri(name.path)}, {"uriBaseId", kRootId}};
  const std::size_t begin = name.path.find_first_not_of('/');
  if (!name.path.starts_with('/') || begin == std::string::npos) return {{"uri", file_uri(name.path)}};
  return {{"uri", file_uri(std::string_view(name.path).substr(begin))}, {"uriBaseId", kMachineId}};
}

// GitHub wants a line of every result; device code has none.
Json location_json(const FilePlace& place, const SourceRoot& root) {
  return {{"physicalLocation",
           {{"artifactLocation", artifact_json(place.file, root)},
            {"region", {{"startLine", std::max(place.line, 1U)}}}}}};
}

Json locations_json(const PlacedFinding& placed, const SourceRoot& root) {
  Json location = placed.place.file.empty() ? Json::object() : location_json(placed.place, root);
  Json logical = Json::array();
  if (!placed.place.member.empty()) {
    logical.push_back({{"fullyQualifiedName", placed.place.member}, {"kind", "module"}});
  }
  const std::vector<std::string>& kernels = placed.finding.kernels;
  for (std::size_t i = 0; i < std::min(kernels.size(), kShownKernels); ++i)
    logical.push_back({{"fullyQualifiedName", kernels[i]}, {"kind", "function"}});
  if (!logical.empty()) location["logicalLocations"] = std::move(logical);
  return location.empty() ? Json::array() : Json::array({std::move(location)});
}

// The file with the device code, where the result points at the user's own line.
Json related_json(const PlacedFinding& placed, const SourceRoot& root) {
  Json out = Json::array();
  if (!placed.finding.object.empty() && placed.place.line != 0 &&
      placed.place.file != placed.finding.object) {
    out.push_back(location_json({placed.finding.object, 0, {}}, root));
    out.back()["message"] = text_json("holds the device code");
  }
  return out;
}

std::string markdown_message(const Finding& finding) {
  MarkdownPage page(false);
  page.paragraph({strong(title_sentence(finding))});
  write_fixes(finding, page);
  return std::move(page).take();
}

// The same trouble has the same hash in the next run: no process, report, count, time or folder of the
// machine is in it.
std::string fingerprint(const Finding& finding) {
  std::string text;
  const auto add = [&](std::string_view part) { text.append(part).append(1, '\0'); };
  add(row_of(finding.cause).name);
  add(basename_of(finding.object));
  add(finding.package.name);
  add(finding.need);
  add(finding.code ? std::to_string(*finding.code) : "");
  add(finding.failed_kernel);
  if (!finding.where.empty()) {
    add(basename_of(finding.where.front().file));
    add(finding.where.front().function);
  }
  return fmt::format("{:016x}", key_hash({reinterpret_cast<const std::byte*>(text.data()), text.size()}));
}

Json result_json(const PlacedFinding& placed, const SourceRoot& root, bool whole,
                 std::map<std::string, unsigned>& seen) {
  const Finding& finding = placed.finding;
  const std::string hash = fingerprint(placed.finding);
  Json out = {{"ruleId", row_of(finding.cause).name},
              {"ruleIndex", static_cast<unsigned>(finding.cause)},
              {"level", level_of(finding.severity)},
              {"rank", finding.confidence * 100},
              {"message",
               {{"text", harmless_lines(message_text(finding))}, {"markdown", markdown_message(finding)}}}};
  out["locations"] = locations_json(placed, root);
  if (Json related = related_json(placed, root); !related.empty())
    out["relatedLocations"] = std::move(related);
  // The second name is the only one by which GitHub knows a result again.
  const std::string print = fmt::format("{}:{}", hash, ++seen[hash]);
  out["partialFingerprints"] = {{"kshim/v1", print}, {"primaryLocationLineHash", print}};
  if (finding.count != 0) out["occurrenceCount"] = finding.count;
  if (whole) out["properties"] = {{"finding", to_json(placed.finding)}};
  return out;
}

Json notification(const std::string& text, const char* level) {
  return {{"level", level}, {"message", text_json(harmless(text))}};
}

}  // namespace

std::string sarif_log(const SarifRun& run) {
  Json driver = {{"name", "kshim"}, {"version", KSHIM_VERSION}, {"semanticVersion", KSHIM_VERSION}};
  driver["rules"] = json_list(causes(), rule_json);
  Json invocation = {{"executionSuccessful", run.failures.empty()}};
  Json& notifications = invocation["toolExecutionNotifications"];
  notifications = json_list(run.notes, [](const std::string& note) { return notification(note, "note"); });
  for (const std::string& failure : run.failures) notifications.push_back(notification(failure, "error"));
  const std::size_t results = std::min(run.findings.size(), kResults);
  if (results < run.findings.size())
    notifications.push_back(
        notification(fmt::format("{} less severe results are left out: code scanning takes {} of a run",
                                 run.findings.size() - results, kResults),
                     "warning"));
  Json one = {{"tool", {{"driver", std::move(driver)}}}, {"columnKind", "unicodeCodePoints"}};
  one["automationDetails"] = {{"id", run.id}};
  one["invocations"] = Json::array({std::move(invocation)});
  Json& roots = one["originalUriBaseIds"];
  if (!run.root.folder().empty()) roots[kRootId] = {{"uri", file_uri(run.root.folder() + '/')}};
  roots[kMachineId] = {{"uri", "file:///"}};
  std::map<std::string, unsigned> seen;
  Json& list = one["results"] = Json::array();
  for (std::size_t i = 0; i < results; ++i)
    list.push_back(result_json(run.findings[i], run.root, i < kWhole, seen));
  const Json log = {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                    {"version", "2.1.0"},
                    {"runs", Json::array({std::move(one)})}};
  return dumped(log);
}

std::string render_sarif(const Analysis& analysis, Format, const RenderOptions&) {
  SarifRun run{.id = "kshim-analyze/", .findings = {}, .notes = analysis.notes, .failures = {}};
  run.findings = placed(analysis.findings, run.root,
                        analysis.processes.empty() ? std::string() : analysis.processes.front().report);
  for (const BlindProcess& process : analysis.blind) {
    const std::string text =
        fmt::format("{} (pid {}) was not watched: {}", process.exe, process.pid, process.reason);
    (analysis.verdict == Verdict::blind ? run.failures : run.notes).push_back(text);
  }
  return sarif_log(run);
}

}  // namespace kshim::analysis
