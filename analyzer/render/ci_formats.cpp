// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/ci_formats.h"

#include "analyzer/render/finding_page.h"
#include "analyzer/render/render.h"
#include "kshim/base/hash.h"
#include "kshim/version.h"

namespace kshim::render {
using core::basename_of;
using core::file_uri;
using core::Finding;
using core::mapped;
using core::sanitize;
using core::Severity;

FilePlace place_of(const Finding& finding, const SourceRoot& root) {
  const auto has_line = [](const core::Place& place) { return !place.file.empty() && place.line != 0; };
  const auto in_checkout = [&](const core::Place& place) {
    return has_line(place) && root.name(place.file).inside;
  };
  auto own = std::ranges::find_if(finding.where, in_checkout);
  if (own == finding.where.end()) own = std::ranges::find_if(finding.where, has_line);
  if (own != finding.where.end()) return {own->file, own->line, {}};
  if (!finding.object.empty()) return {finding.object, 0, {}};
  const auto proof = std::ranges::find_if(
      finding.evidence, [](const core::Evidence& evidence) { return !evidence.at.empty(); });
  return proof == finding.evidence.end()
             ? FilePlace{}
             : FilePlace{proof->at.file, static_cast<unsigned>(proof->at.line), {}};
}

std::vector<PlacedFinding> placed(const std::vector<Finding>& findings, const SourceRoot& root,
                                  const std::string& otherwise) {
  std::vector<PlacedFinding> out;
  out.reserve(findings.size());
  for (const Finding& finding : findings) {
    out.push_back({finding, place_of(finding, root)});
    if (out.back().place.file.empty()) out.back().place.file = otherwise;
  }
  return out;
}

std::string clipped(std::string text, std::size_t bytes) {
  constexpr std::string_view kMore = "...";
  if (text.size() <= bytes || bytes < kMore.size()) return text;
  std::size_t end = bytes - kMore.size();
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
  return text.append(kMore);
}

namespace {

namespace fs = std::filesystem;

std::string without_last_slash(std::string path) {
  while (!path.empty() && path.back() == '/') path.pop_back();
  return path;
}

std::string getenv_text(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

constexpr std::size_t kShownKernels = 20;
// What GitHub takes of one run: https://docs.github.com/en/code-security/reference/code-scanning/sarif-files.
// A log with more results, or one of more than 10 MB packed, is refused as a whole.
constexpr std::size_t kResults = 25'000;
constexpr std::size_t kWhole = 1000;          // results that carry all of their finding
constexpr const char* kRootId = "%SRCROOT%";  // the name that GitHub and the standard's examples know
// Files elsewhere on the machine. A URI with a scheme would have GitHub refuse the log.
constexpr const char* kMachineId = "%MACHINE%";

const char* level_of(Severity severity) {
  constexpr const char* kLevels[] = {"none", "note", "warning", "error"};
  return kLevels[static_cast<std::size_t>(severity)];
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

Json rule_json(const core::CauseRow& row) {
  const std::string when = core::as_sentence(std::string(row.when));
  const std::string more =
      "Each result names the commands that repair it, best first, and what will not help.";
  Json out = {{"id", row.name},
              {"name", rule_name(row.name)},
              {"shortDescription", text_json(core::as_sentence(std::string(row.headline)))},
              {"fullDescription", text_json(when)}};
  const auto page = markdown_page(true);
  page->paragraph({{when + " " + more}});
  page->paragraph({{"In a terminal: "},
                   {"kshim analyze", core::Tone::code},
                   {" of the report, or "},
                   {"kshim scan --target ARCHS", core::Tone::code},
                   {" of the file."}});
  out["help"] = {{"text", when + " " + more}, {"markdown", page->take()}};
  out["defaultConfiguration"] = {{"level", level_of(row.severity)}};
  // What GitHub sorts and filters by.
  out["properties"] = {{"tags", {"cuda", "gpu", "compatibility"}},
                       {"precision", row.cause == core::Cause::unknown ? "low" : "high"},
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
  const auto page = markdown_page(false);
  page->paragraph({strong(title_sentence(finding))});
  write_fixes(finding, *page);
  return page->take();
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
               {{"text", core::join(mapped(core::split(message_text(finding), "\n"), sanitize), "\n")},
                {"markdown", markdown_message(finding)}}}};
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
  return {{"level", level}, {"message", text_json(sanitize(text))}};
}

constexpr unsigned kWidth = 100;
constexpr std::size_t kNameBytes = 500;  // CI servers make columns and URLs of names

// XML 1.0 has no way to write most control characters, nor U+FFFE and U+FFFF.
std::string xml_line(std::string_view text) { return core::escape_markup(sanitize(text)); }

void attribute(std::string& out, const char* name, std::string_view value) {
  out.append(" ").append(name).append("=\"").append(xml_line(value)).append("\"");
}

/// How many cases there are, and with which result.
void write_counts(std::string& out, std::span<const TestSuite> suites) {
  const auto add = [&](const char* name, std::optional<TestResult> result) {
    std::size_t count = 0;
    for (const TestSuite& suite : suites)
      for (const TestCase& test : suite.cases)
        if (!result || test.result == *result) ++count;
    attribute(out, name, std::to_string(count));
  };
  add("tests", {});
  add("failures", TestResult::failed);
  add("errors", TestResult::broken);
  add("skipped", TestResult::skipped);
}

void write_case(std::string& out, const TestCase& test) {
  out += "    <testcase";
  attribute(out, "classname", clipped(test.group, kNameBytes));
  attribute(out, "name", clipped(test.name, kNameBytes));
  const bool passed = test.result == TestResult::passed;
  if (passed && test.text.empty()) {
    out += "/>\n";
    return;
  }
  constexpr const char* kTags[] = {"system-out", "failure", "error", "skipped"};
  const char* const tag = kTags[static_cast<std::size_t>(test.result)];
  out.append(">\n      <").append(tag);
  if (!passed) attribute(out, "message", test.message);
  if (!passed && !test.type.empty()) attribute(out, "type", test.type);
  out += test.text.empty()
             ? "/>"
             : fmt::format(">{}</{}>", core::join(mapped(core::split(test.text, "\n"), xml_line), "\n"), tag);
  out += "\n    </testcase>\n";
}

// Names that stay the same in the next run, as far as that is possible.
std::vector<std::string> process_names(const std::vector<verbs::ProcessSummary>& processes) {
  std::map<std::string, unsigned> times;
  std::vector<std::string> names;
  for (const verbs::ProcessSummary& process : processes) {
    std::string name(process.exe.empty() ? "process" : basename_of(process.exe));
    if (process.rank) name += fmt::format(" rank {}", *process.rank);
    ++times[name];
    names.push_back(std::move(name));
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (times[names[i]] > 1) names[i] += fmt::format(" (pid {})", processes[i].pid);
  }
  return names;
}

std::string blind_text(const diagnose::BlindProcess& process) {
  return fmt::format("{} (pid {}) was not watched: {}", process.exe, process.pid, process.reason);
}

constexpr std::size_t kTitleBytes = 240;     // GitHub takes 255 characters
constexpr std::size_t kMessageBytes = 4000;  // and 64 KiB, which nobody reads
constexpr std::size_t kShown = 10;           // annotations of one kind that GitHub shows of a step

// The runner takes these apart at line ends and, in properties, at colons and commas.
std::string escaped(std::string_view text, bool property) {
  std::string out;
  for (const char c : text)
    if (core::contains(property ? "%\r\n:," : "%\r\n", c))
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    else
      out += c;
  return out;
}

constexpr std::array kCommands = {"error", "warning", "notice"};

void add_finding(const PlacedFinding& placed, const SourceRoot& root, GithubCommands& commands) {
  const Finding& finding = placed.finding;
  std::string properties;
  std::string message = message_text(finding);
  // The runner finds a line in the checkout by its path from there. A file outside of it has no page to show
  // it on, and is named in words.
  const SourceRoot::Named name = root.name(placed.place.file);
  if (name.inside) {
    properties = fmt::format("file={},", escaped(sanitize(name.path), true));
    if (placed.place.line != 0) properties += fmt::format("line={},", placed.place.line);
  } else if (!placed.place.file.empty()) {
    message += "\nFile: " + sanitize(name.path);
    if (placed.place.line != 0) message += fmt::format(":{}", placed.place.line);
  }
  commands.add(finding.severity, fmt::format("kshim: {}", row_of(finding.cause).headline), message,
               properties);
}

}  // namespace

SourceRoot::SourceRoot(std::string root, std::vector<std::string> names, std::string working)
    : root_(without_last_slash(std::move(root))), working_(without_last_slash(std::move(working))) {
  if (!root_.starts_with('/')) root_.clear();
  if (root_.empty()) return;
  names_.push_back(root_);
  for (std::string& name : names) {
    name = without_last_slash(std::move(name));
    if (name.starts_with('/')) names_.push_back(std::move(name));
  }
}

SourceRoot SourceRoot::of_process() {
  std::error_code error;
  const std::string working = fs::current_path(error).string();
  std::vector<std::string> names;
  std::string root = getenv_text("GITHUB_WORKSPACE");
  if (root.starts_with('/')) {
    names.push_back(fs::weakly_canonical(root, error).string());
  } else {
    root = working;
    // What the shell calls it.
    const std::string logical = getenv_text("PWD");
    if (logical.starts_with('/') && fs::equivalent(logical, working, error) && !error)
      names.push_back(logical);
  }
  return {std::move(root), std::move(names), working};
}

SourceRoot::Named SourceRoot::name(std::string_view path) const {
  if (path.empty() || (!path.starts_with('/') && working_.empty())) return {std::string(path), false};
  std::string whole = path.starts_with('/') ? std::string(path) : working_ + '/' + std::string(path);
  // Lexically: a file of a report may be on another machine.
  if (core::contains(whole, "/.")) whole = fs::path(whole).lexically_normal().string();
  for (const std::string& root : names_)
    if (const std::size_t begin = whole.find_first_not_of('/', root.size());
        whole.starts_with(root + '/') && begin != std::string::npos)
      return {whole.substr(begin), true};
  return {std::move(whole), false};
}

std::string sarif_log(const SarifRun& run) {
  Json driver = {{"name", "kshim"}, {"version", KSHIM_VERSION}, {"semanticVersion", KSHIM_VERSION}};
  driver["rules"] = json_list(core::causes(), rule_json);
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

std::string render_sarif(const verbs::Analysis& analysis, Format, const RenderOptions&) {
  SarifRun run{.id = "kshim-analyze/", .notes = analysis.notes};
  run.findings = placed(analysis.findings, run.root,
                        analysis.processes.empty() ? std::string() : analysis.processes.front().report);
  for (const diagnose::BlindProcess& process : analysis.blind)
    (analysis.verdict == verbs::Verdict::blind ? run.failures : run.notes).push_back(blind_text(process));
  return sarif_log(run);
}

std::string junit_xml(std::string_view name, const std::vector<TestSuite>& suites) {
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites";
  attribute(out, "name", name);
  write_counts(out, suites);
  out += ">\n";
  for (const TestSuite& suite : suites) {
    out += "  <testsuite";
    attribute(out, "name", clipped(suite.name, kNameBytes));
    write_counts(out, {&suite, 1});
    out += ">\n";
    for (const TestCase& test : suite.cases) write_case(out, test);
    out += "  </testsuite>\n";
  }
  return out + "</testsuites>\n";
}

TestCase test_case(const Finding& finding, std::string group) {
  const auto page = text_page({.unicode = true, .width = kWidth});
  write_finding(finding, 1, *page);
  const bool error = finding.severity == Severity::error;
  const std::string cause(row_of(finding.cause).name);
  return {std::move(group),  title_of(finding), error ? TestResult::failed : TestResult::passed, cause,
          title_of(finding), page->take()};
}

std::string render_junit(const verbs::Analysis& analysis, Format, const RenderOptions&) {
  const std::vector<std::string> names = process_names(analysis.processes);
  std::vector<TestSuite> suites(analysis.processes.size());
  for (std::size_t i = 0; i < suites.size(); ++i) suites[i].name = names[i];
  TestSuite others{.name = "kshim"};
  for (const Finding& finding : analysis.findings) {
    for (const std::uint32_t process : finding.seen_by)
      suites[process].cases.push_back(test_case(finding, names[process]));
    if (finding.seen_by.empty()) others.cases.push_back(test_case(finding, "kshim"));
  }
  for (std::size_t i = 0; i < suites.size(); ++i) {
    if (!suites[i].cases.empty()) continue;
    TestCase& clean = suites[i].cases.emplace_back(TestCase{.group = names[i], .name = "device code"});
    if (!analysis.processes[i].complete)
      clean.text = "The report has no end: the process was killed, left by _exit, or still runs.";
    if (const auto& ending = analysis.processes[i].ending; ending.failed())
      clean.text = fmt::format("The program ended with {}.", ending.text());
  }
  const bool blind = analysis.verdict == verbs::Verdict::blind;
  for (const diagnose::BlindProcess& process : analysis.blind)
    others.cases.push_back({.group = std::string(basename_of(process.exe)),
                            .name = "watched",
                            .result = blind ? TestResult::broken : TestResult::skipped,
                            .type = blind ? "blind" : "",
                            .message = blind_text(process)});
  if (!others.cases.empty()) suites.push_back(std::move(others));
  return junit_xml("kshim analyze", suites);
}

void GithubCommands::add(Severity severity, std::string_view title, std::string_view text,
                         std::string_view properties) {
  const std::size_t kind = severity == Severity::error ? 0 : severity == Severity::warning ? 1 : 2;
  commands_.at(kind).push_back(fmt::format(
      "::{} {}title={}::{}\n", kCommands.at(kind), properties,
      escaped(clipped(sanitize(title), kTitleBytes), true),
      escaped(clipped(core::join(mapped(core::split(text, "\n"), sanitize), "\n"), kMessageBytes), false)));
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
  for (const std::string& warning : warnings) commands.add(Severity::warning, "kshim", sanitize(warning));
  for (const std::string& note : notes) commands.add(Severity::info, "kshim", sanitize(note));
  return commands.text();
}

std::string render_github(const verbs::Analysis& analysis, Format, const RenderOptions&) {
  const SourceRoot root = SourceRoot::of_process();
  return github_commands(placed(analysis.findings, root, {}), root, mapped(analysis.blind, blind_text),
                         analysis.notes);
}

}  // namespace kshim::render
