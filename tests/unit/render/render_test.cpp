// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/render.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "analyzer/verbs/analysis.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

Finding finding(Cause cause) {
  Finding out;
  out.cause = cause;
  out.severity = row_of(cause).severity;
  out.confidence = 0.97;
  out.code = 209;
  out.code_name = "CUDA_ERROR_NO_BINARY_FOR_GPU";
  out.object = "/home/ada/saxpy";
  out.have = {"sm_75"};
  out.images = {{"cubin", "sm_75", "", 1, false, "runs on 7.x GPUs only"}};
  out.need = "sm_61";
  out.devices = {{.ordinal = 0U, .name = "NVIDIA GeForce GTX 1080", .cc = image::ComputeCapability{6, 1}}};
  out.failed_call = "cuLibraryGetKernel";
  out.failed_kernel = "saxpy(int, float*)";
  out.kernels = {out.failed_kernel};
  out.kernels_total = 1;
  out.evidence = {{EvidenceId::rule, "A sentence.", {"reports/node7.1.jsonl", 6}}};
  out.fixes = {{FixKind::rebuild, "Rebuild", {"nvcc -o saxpy SOURCES"}, "why", "caveat"}};
  out.dead_ends = {{"waiting", "nothing changes"}};
  return out;
}

Analysis analysis_of(std::vector<Finding> findings) {
  Analysis out;
  out.verdict = findings.empty() ? Verdict::ok : Verdict::gap;
  ProcessSummary process;
  process.report = "reports/node7.1.jsonl";
  process.modules = 3;
  process.complete = true;
  out.processes = {process};
  out.findings = std::move(findings);
  return out;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

std::string without_colors(std::string text) {
  for (std::size_t at = text.find('\033'); at != std::string::npos; at = text.find('\033', at)) {
    text.erase(at, text.find('m', at) - at + 1);
  }
  return text;
}

TEST(RenderText, FirstLineNamesKernelFileAndGpu) {
  const auto lines =
      lines_of(rendered(analysis_of({finding(Cause::no_image_for_arch)}), Format::text, {.width = 100}));
  EXPECT_EQ(
      lines.front(),
      "error: kernel saxpy cannot run: saxpy has no code for NVIDIA GeForce GTX 1080 (6.1), only for sm_75");
}

TEST(RenderText, EveryCauseHasATitleWithoutPlaceholders) {
  for (int i = 0; i <= static_cast<int>(Cause::unknown); ++i) {
    // How a library works is said with --verbose alone.
    const std::string text = rendered(analysis_of({finding(static_cast<Cause>(i))}), Format::text,
                                      {.width = 100, .verbose = true});
    EXPECT_EQ(text.find('{'), std::string::npos) << text;
    ASSERT_FALSE(lines_of(text).empty()) << i;
    EXPECT_GT(lines_of(text).front().size(), 15U) << text;
  }
}

TEST(RenderText, HealthyRunIsOneLine) {
  EXPECT_EQ(rendered(analysis_of({}), Format::text, {}), "ok: 3 kernel modules loaded, nothing missing\n");
}

/// As text, in one line.
std::string told(const Analysis& analysis) {
  std::string out;
  for (const std::string& line : lines_of(rendered(analysis, Format::text, {})))
    out += (out.empty() ? "" : " ") + line.substr(std::min(line.find_first_not_of(' '), line.size()));
  return out;
}

Analysis failed_with(int status, bool simulated) {
  Analysis out = analysis_of({});
  out.verdict = Verdict::failure;
  out.exit_status = status;
  out.devices.emplace_back().simulated = simulated;
  return out;
}

TEST(RenderText, AProgramThatFailedByItselfIsNotCalledOk) {
  constexpr const char* kSimulated = "a simulated GPU runs no kernel";
  const std::string text = told(failed_with(7, false));
  EXPECT_TRUE(text.starts_with("no gap seen: 3 kernel modules loaded")) << text;
  EXPECT_NE(text.find("ended with 7"), std::string::npos) << text;
  EXPECT_EQ(text.find(kSimulated), std::string::npos) << text;
  EXPECT_NE(told(failed_with(7, true)).find(kSimulated), std::string::npos);
  Analysis warned = failed_with(7, true);
  warned.findings = {finding(Cause::stale_error)};
  warned.findings[0].severity = Severity::warning;
  const std::string known = told(warned);
  EXPECT_NE(known.find("ended with 7"), std::string::npos) << known;
  EXPECT_EQ(known.find(kSimulated), std::string::npos) << "said where nothing else is known";
}

TEST(RenderText, ASignalIsNamedWhateverElseIsSaid) {
  Finding note = finding(Cause::benign_probe);
  note.severity = Severity::info;
  for (const Verdict verdict : {Verdict::gap, Verdict::failure, Verdict::blind, Verdict::incomplete}) {
    for (const std::vector<Finding>& findings :
         {std::vector<Finding>{}, {note}, {finding(Cause::no_image_for_arch)}}) {
      Analysis analysis = analysis_of(findings);
      analysis.verdict = verdict;
      analysis.processes[0].complete = false;
      analysis.term_signal = 11;
      for (const Format format : {Format::text, Format::markdown, Format::html}) {
        const std::string text = rendered(analysis, format, {.width = 300});
        const std::size_t first = text.find("signal 11");
        EXPECT_NE(first, std::string::npos) << to_name(verdict) << "\n" << text;
        EXPECT_EQ(text.find("signal 11", first + 1), std::string::npos) << "once\n" << text;
      }
    }
  }
}

TEST(RenderText, AnIdleProgramIsNamedWithWhatItHadLoaded) {
  Analysis analysis = analysis_of({});
  analysis.verdict = Verdict::idle;
  analysis.processes.at(0).modules = 0;
  analysis.mapped = {"liba.so", "libb.so", "libc.so", "libd.so", "libe.so"};
  const std::string text = told(analysis);
  EXPECT_TRUE(text.starts_with("idle: ")) << text;
  EXPECT_NE(text.find("liba.so, libb.so, libc.so, libd.so and 1 more"), std::string::npos) << text;
  EXPECT_EQ(text.find("nothing missing"), std::string::npos) << text;
}

TEST(RenderText, GpusStandInTheOrderOfTheirNumbers) {
  Analysis analysis = analysis_of({});
  for (const char* name : {"Z", "A", "Z"}) {
    DeviceSummary device;
    device.name = name;
    analysis.devices.push_back(device);
  }
  EXPECT_NE(rendered(analysis, Format::text, {.width = 200}).find("Z (?) and A (?)"), std::string::npos);
}

TEST(RenderText, AGapThatNobodyRanIntoIsNotNothing) {
  Finding gap = finding(Cause::latent_gap);
  gap.severity = Severity::info;
  Analysis analysis = analysis_of({gap});
  analysis.verdict = Verdict::ok;
  const auto lines = lines_of(rendered(analysis, Format::text, {}));
  EXPECT_TRUE(lines.front().starts_with("ok: 3 kernel modules loaded, nothing failed")) << lines.front();
}

TEST(RenderText, ColorsChangeNothingElse) {
  const Analysis analysis =
      analysis_of({finding(Cause::no_image_for_arch), finding(Cause::ptx_jit_disabled)});
  const std::string plain = rendered(analysis, Format::text, {.color = false, .unicode = true});
  const std::string colored = rendered(analysis, Format::text, {.color = true, .unicode = true});
  EXPECT_EQ(plain.find('\033'), std::string::npos);
  EXPECT_NE(colored.find("\033[1;31m"), std::string::npos);
  EXPECT_EQ(without_colors(colored), plain);
}

TEST(RenderText, NoLineEndsInBlanksOrIsTooWide) {
  Finding wordy = finding(Cause::ptx_newer_than_device);
  wordy.kernels = {
      "void f<A<int, int, int, int>, double, std::array<char, 128> >(int, int, int, std::array<char, 128>)"};
  wordy.failed_kernel = wordy.kernels.front();
  wordy.remarks = {"A remark that is rather long, so that it has to be broken at the right place to fit."};
  wordy.images.push_back({"ptx", "compute_90", "", 1, false, ""});
  const Analysis analysis = analysis_of({wordy, finding(Cause::latent_gap), finding(Cause::jit_tax)});
  for (const unsigned width : {60U, 80U, 100U}) {
    for (const std::string& line : lines_of(rendered(analysis, Format::text, {.width = width}))) {
      EXPECT_LE(line.size(), width) << line;
      EXPECT_FALSE(line.ends_with(' ')) << "'" << line << "'";
    }
  }
}

TEST(RenderText, AsciiWhereTheLocaleHasNothingElse) {
  Analysis analysis = analysis_of({finding(Cause::no_image_for_arch)});
  analysis.findings[0].object = "/home/j\u00fcrgen/saxpy";
  const std::string plain = rendered(analysis, Format::text, {.unicode = false, .verbose = true});
  EXPECT_TRUE(
      std::all_of(plain.begin(), plain.end(), [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
  EXPECT_NE(plain.find("/home/j?rgen/saxpy"), std::string::npos);
  EXPECT_NE(
      rendered(analysis, Format::text, {.unicode = true, .verbose = true}).find("/home/j\u00fcrgen/saxpy"),
      std::string::npos);
  // A `?` would be the command of another file.
  analysis.processes.resize(1);
  analysis.processes.front().report = "/home/j\u00fcrgen/1.jsonl";
  EXPECT_NE(rendered(analysis, Format::text, {}).find("analyze -v '/home/j\u00fcrgen/1.jsonl'"),
            std::string::npos);
}

// A report is a stranger's file, and what it says lands on a terminal.
TEST(RenderText, NoStringReachesTheTerminalWithAnEscape) {
  const std::string evil = "x\x1b]0;owned\x07\u009b31m\u202e\xe2\x1b[2J";
  Finding hostile = finding(Cause::unknown);
  for (std::string* text : {&hostile.code_name, &hostile.object, &hostile.package.name, &hostile.headline,
                            &hostile.need, &hostile.failed_call, &hostile.failed_kernel}) {
    *text = evil;
  }
  hostile.kernels = hostile.have = hostile.remarks = {evil, evil + "2"};
  hostile.devices = {{.ordinal = 0U, .name = evil}};
  hostile.images = {{evil, evil, evil, 1, false, evil}};
  hostile.evidence = {{EvidenceId::rule, evil, {evil}}};
  hostile.where = {Place{evil, 1, evil, evil, 0, false}, Place{"", 0, evil, evil, 0, false},
                   Place{"", 0, "", evil, 0, false}};
  hostile.fixes = {{FixKind::code, evil, {evil}, evil, evil}};
  hostile.dead_ends = {{evil, evil}};
  Finding second = hostile;
  second.severity = Severity::info;
  Analysis analysis = analysis_of({hostile, hostile, second});
  analysis.notes = {evil};
  analysis.blind = {{7, evil, evil}};
  analysis.processes[0].report = evil;
  analysis.processes[0].complete = false;
  DeviceSummary device;
  device.name = evil;
  analysis.devices = {device};
  for (const Verdict verdict : {Verdict::ok, Verdict::gap, Verdict::incomplete, Verdict::blind, Verdict::idle,
                                Verdict::failure, Verdict::no_cuda}) {
    analysis.verdict = verdict;
    for (const bool verbose : {false, true}) {
      for (const Format format : {Format::text, Format::json}) {
        const std::string out = rendered(analysis, format, {.unicode = true, .verbose = verbose});
        EXPECT_EQ(out.find('\x1b'), std::string::npos);
        EXPECT_EQ(out.find('\x07'), std::string::npos);
        EXPECT_EQ(out.find("\u009b"), std::string::npos);
        EXPECT_EQ(out.find("\u202e"), std::string::npos);
      }
    }
  }
}

TEST(RenderText, SeveralFindingsBeginWithASummary) {
  const std::string text =
      rendered(analysis_of({finding(Cause::no_image_for_arch), finding(Cause::compiled_out)}), Format::text,
               {.width = 100, .verbose = true});
  EXPECT_EQ(lines_of(text).front(), "1 error and 1 warning");
}

// A screen has two answers at most; each names the actor of its first fix.
TEST(RenderText, AScreenHasTwoAnswersAndCountsTheOthers) {
  std::vector<Finding> findings(5, finding(Cause::no_image_for_arch));
  const std::vector<std::string> lines =
      lines_of(rendered(analysis_of(findings), Format::text, {.width = 100}));
  EXPECT_EQ(std::ranges::count_if(lines, [](const std::string& line) { return line.starts_with("error:"); }),
            2);
  EXPECT_NE(std::ranges::find(lines, "and 3 more findings"), lines.end());
  for (const auto& [actor, words] : {std::pair{Actor::you, "[you]"}, {Actor::admin, "[admin of the host]"}}) {
    findings.resize(1);
    findings.front().fixes.front().actor = actor;
    const std::string one = rendered(analysis_of(findings), Format::text, {.width = 100});
    EXPECT_NE(one.find(words), std::string::npos) << one;
    EXPECT_LE(lines_of(one).size(), 15U) << one;
  }
}

TEST(RenderText, PlacesThatLookAlikeAreShownOnce) {
  Finding twice = finding(Cause::no_image_for_arch);
  const Place first{"", 0, "main", "/opt/app", 0x100, true};
  Place second = first;
  second.offset = 0x200;
  twice.where = {first, second};
  const std::string text = rendered(analysis_of({twice}), Format::text, {});
  const std::size_t shown = text.find("main, in app");
  ASSERT_NE(shown, std::string::npos) << text;
  EXPECT_EQ(text.find("main, in app", shown + 1), std::string::npos) << text;
}

TEST(RenderText, VerboseLiftsTheLimits) {
  Finding many = finding(Cause::no_image_for_arch);
  for (int i = 0; i < 50; ++i) many.kernels.push_back("kernel_" + std::to_string(i) + "()");
  many.kernels_total = many.kernels.size();
  EXPECT_EQ(rendered(analysis_of({many}), Format::text, {}).find("kernel_49()"), std::string::npos);
  const std::string all = rendered(analysis_of({many}), Format::text, {.verbose = true});
  EXPECT_NE(all.find("kernel_49()"), std::string::npos);
}

TEST(RenderJson, SaysWhatIsNotKnownAsNull) {
  Finding bare;
  const auto json = nlohmann::json::parse(rendered(analysis_of({bare}), Format::json, {}));
  EXPECT_EQ(json["schema"], "kshim-analysis/1");
  const auto& found = json["findings"][0];
  for (const char* key : {"code", "object", "package", "need", "where", "failed_kernel"})
    EXPECT_TRUE(found[key].is_null()) << key;
  for (const char* key : {"kernels", "have", "evidence", "fixes", "dead_ends"})
    EXPECT_TRUE(found[key].is_array()) << key;
}

TEST(RenderJson, EvidencePointsAtItsLine) {
  const auto json =
      nlohmann::json::parse(rendered(analysis_of({finding(Cause::no_image_for_arch)}), Format::json, {}));
  EXPECT_EQ(json["findings"][0]["evidence"][0], "A sentence. (reports/node7.1.jsonl:6)");
}

// What a report holds stays readable to programs, byte for byte where it is UTF-8.
TEST(RenderJson, KeepsForeignTextAndSurvivesBrokenUtf8) {
  Finding odd = finding(Cause::unknown);
  odd.object = "/home/j\u00fcrgen/\x1b[1m";
  odd.package.name = "\xe2\x28 broken";
  const auto json = nlohmann::json::parse(rendered(analysis_of({odd}), Format::json, {}));
  EXPECT_EQ(json["findings"][0]["object"], odd.object);
  EXPECT_EQ(json["findings"][0]["package"], "\ufffd( broken");
}

TEST(Formats, NamesAreThoseThatParse) {
  for (const Format& format : kFormats) EXPECT_EQ(parse_format(format_names({&format, 1})), format);
  EXPECT_EQ(format_names({kFormats.data(), 3}), "text, json, markdown");
  EXPECT_EQ(parse_format("json"), Format::json);
  EXPECT_EQ(parse_format("JSON"), std::nullopt);
  EXPECT_EQ(parse_format(""), std::nullopt);
}

}  // namespace
}  // namespace kshim::test
