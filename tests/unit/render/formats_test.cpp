// SPDX-License-Identifier: Apache-2.0
// What each format says of a plain analysis and a plain scan. formats_check.py reads hostile ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "analyzer/render/ci_formats.h"
#include "analyzer/render/render.h"
#include "analyzer/render/scan/render.h"
#include "hostile.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

Finding finding(Cause cause) {
  Finding out;
  out.cause = cause;
  out.severity = row_of(cause).severity;
  out.confidence = 0.97;
  out.object = "/opt/x/libx.so";
  out.have = {"sm_80"};
  out.images = {{"cubin", "sm_80", "", 2, false, "runs on 8.x GPUs only"},
                {"ptx", "compute_90", "8.4", 1, true, "fits"}};
  out.need = "sm_61";
  out.devices = {{.ordinal = 0U, .name = "NVIDIA GeForce GTX 1080", .cc = image::ComputeCapability{6, 1}}};
  out.code = 209;
  out.failed_kernel = "saxpy(int, float*)";
  out.kernels = {out.failed_kernel};
  out.evidence = {{EvidenceId::rule, "A sentence.", {"r/host.1.jsonl", 6}}};
  out.fixes = {{FixKind::rebuild, "Rebuild", {"nvcc -o libx.so SOURCES"}, "why", "a caveat"}};
  out.dead_ends = {{"waiting", "nothing changes"}};
  return out;
}

Analysis analysis_of(std::vector<Finding> findings) {
  Analysis out;
  out.verdict = findings.empty() ? Verdict::ok : Verdict::gap;
  out.processes.resize(2);
  out.processes[0].report = "r/host.1.jsonl";
  out.processes[0].exe = "/usr/bin/python3";
  out.processes[0].complete = true;
  out.processes[1] = out.processes[0];
  out.processes[1].report = "r/host.2.jsonl";
  out.processes[1].rank = 1;
  out.findings = std::move(findings);
  for (Finding& each : out.findings) each.seen_by = {0};
  return out;
}

Scan plain_scan() {
  Scan out;
  out.targets = {{{6, 1}, {}}, {{9, 0}, image::Suffix::a}};
  out.driver = {12, 8};
  out.files = 3;
  out.bytes = 4'000'000;
  ScannedObject object;
  object.path = "/opt/x.whl";
  object.member = "x/libx.so";
  object.format = "ELF x86-64";
  object.bytes = 1'000'000;
  object.images = {{{image::ImageKind::cubin, {{8, 0}, {}}, {}}, 2, 100},
                   {{image::ImageKind::ptx, {{8, 0}, {}}, {8, 4}}, 2, 100},
                   {{image::ImageKind::cubin, {{9, 0}, image::Suffix::a}, {}}, 2, 100}};
  object.targets = {{out.targets[0], 0, 0, 2}, {out.targets[1], 2, 0, 0}};
  out.objects = {object, object};
  out.objects[1].member = "x/liby.so";
  out.objects[1].targets[0] = {out.targets[0], 0, 2, 0};
  Finding gap = finding(Cause::no_image_for_arch);
  gap.object = object.name();
  gap.devices = {target_device(image::ComputeCapability{6, 1})};
  out.findings = {gap};
  return out;
}

// 3 other calls failed with it, by another name: no call failed 4 times.
TEST(Formats, TextAndPagesCountTheSameCalls) {
  Finding one = finding(Cause::no_image_for_arch);
  one.count = 4;
  one.call_count = 1;
  Analysis analysis;
  analysis.verdict = Verdict::gap;
  analysis.findings = {one};
  for (const Format format : {Format::text, Format::markdown, Format::html}) {
    const std::string text = rendered(analysis, format, {});
    EXPECT_NE(text.find("3 other calls failed with it"), std::string::npos) << text;
    EXPECT_EQ(text.find("4 times"), std::string::npos) << text;
  }
}

std::size_t count(const std::string& text, std::string_view what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

#define EXPECT_HAS(text, what) \
  EXPECT_NE((text).find(what), std::string::npos) << (what) << " is not in\n" << (text)

TEST(FormatMarkdown, SaysWhatWhereAndTheFix) {
  const std::string text = rendered(analysis_of({finding(Cause::no_image_for_arch)}), Format::markdown, {});
  EXPECT_TRUE(text.starts_with("# kshim: 1 error\n")) << text;
  EXPECT_HAS(text,
             "## error: kernel saxpy cannot run: libx.so has no code for NVIDIA GeForce GTX 1080 (6.1)\n");
  EXPECT_HAS(text, "| cubin | `sm_80` | 2 | \u2717 | runs on 8.x GPUs only |\n");
  EXPECT_HAS(text, "| PTX 8.4 | `compute_90` | 1 | \u2713 | fits |\n");
  EXPECT_HAS(text,
             "### Fix: Rebuild\n\n```sh\nnvcc -o libx.so SOURCES\n```\n\nWhy.\n\n**Note:** a caveat.\n");
  EXPECT_HAS(text, "- **waiting**: nothing changes\n");
  EXPECT_HAS(
      text,
      "<details>\n<summary>Evidence in r/</summary>\n\n- `host.1.jsonl:6`: A sentence.\n\n</details>\n");
  EXPECT_HAS(text, "## Environment\n");
}

TEST(FormatMarkdown, SaysOkInASentence) {
  Analysis healthy = analysis_of({});
  healthy.processes[0].modules = 3;
  const std::string text = rendered(healthy, Format::markdown, {});
  EXPECT_TRUE(text.starts_with("# kshim: ok\n")) << text;
  EXPECT_HAS(text, "\n\n**ok:** 3 kernel modules loaded in 2 processes, nothing missing\n");
}

TEST(FormatMarkdown, ScanHasBothMatrices) {
  const std::string text = rendered(plain_scan(), Format::markdown, {});
  EXPECT_TRUE(text.starts_with("# kshim scan: 1 error\n")) << text;
  EXPECT_HAS(text, "| File | sm_61 | sm_90a |\n");
  EXPECT_HAS(text, "| `libx.so` | \u2717 nothing runs | \u2713 |\n");
  EXPECT_HAS(text, "| `liby.so` | \u2713 2 compiled from PTX | \u2713 |\n");
  EXPECT_HAS(text, "| File | Size | 8.0 | 9.0a |\n");
  EXPECT_HAS(text, "| `libx.so` | 1.0 MB | SASS, PTX | SASS |\n");
  EXPECT_HAS(text, "CUDA 12.8");
}

TEST(FormatHtml, EscapesAndFolds) {
  Finding one = finding(Cause::no_image_for_arch);
  for (int i = 0; i < 9; ++i) one.kernels.push_back("f" + std::to_string(i));
  one.kernels.emplace_back("f<int>(A&)");
  const std::string text = rendered(analysis_of({one}), Format::html, {});
  EXPECT_TRUE(text.starts_with("<!DOCTYPE html><html lang=\"en\">")) << text;
  EXPECT_HAS(text, "default-src &#39;none&#39;");
  EXPECT_HAS(text, "<summary>11 kernels</summary>");
  EXPECT_HAS(text, "<code>f&lt;int&gt;(A&amp;)</code>");
  EXPECT_HAS(text, "<pre><code>nvcc -o libx.so SOURCES</code></pre>");
  EXPECT_EQ(count(text, "<script"), 1U);
}

TEST(FormatJunit, AProcessIsASuite) {
  const std::string text = rendered(
      analysis_of({finding(Cause::no_image_for_arch), finding(Cause::compiled_out)}), Format::junit, {});
  EXPECT_HAS(text,
             "<testsuites name=\"kshim analyze\" tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"0\">");
  EXPECT_HAS(text, "<testsuite name=\"python3\" tests=\"2\" failures=\"1\"");
  EXPECT_HAS(text, "<testsuite name=\"python3 rank 1\" tests=\"1\" failures=\"0\"");
  EXPECT_HAS(text, "<testcase classname=\"python3 rank 1\" name=\"device code\"/>");
  EXPECT_HAS(text, "type=\"no-image-for-arch\">error: kernel saxpy cannot run");
  EXPECT_EQ(count(text, "<system-out>"), 1U);
}

TEST(FormatJunit, WhatNoProcessHasIsKept) {
  Analysis stray = analysis_of({finding(Cause::no_image_for_arch)});
  stray.findings[0].seen_by.clear();
  EXPECT_EQ(count(rendered(stray, Format::junit, {}), "<failure"), 1U);
}

TEST(FormatJunit, ABlindRunIsAnError) {
  Analysis blind = analysis_of({});
  blind.blind = {{7, "/x", "it is statically linked"}};
  EXPECT_HAS(rendered(blind, Format::junit, {}), "skipped=\"1\"");
  blind.verdict = Verdict::blind;
  EXPECT_HAS(rendered(blind, Format::junit, {}), "errors=\"1\" skipped=\"0\"");
  EXPECT_HAS(rendered(blind, Format::sarif, {}), "\"executionSuccessful\": false");
  EXPECT_HAS(rendered(blind, Format::github, {}), "::warning title=kshim::/x (pid 7) was not watched");
}

TEST(FormatJunit, HasNoControlsWhoeverCallsIt) {
  const std::string evil = "a\x1b\x01<\ufffe\n";
  const std::string text =
      junit_xml(evil, {{evil, {{evil, evil, TestResult::failed, evil, evil, evil + evil}}}});
  EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](char c) {
    return c == '\n' || (c >= ' ' && c <= '~');
  })) << text;
  EXPECT_HAS(text, ">a??&lt;?\na??&lt;?\n</failure>");
}

TEST(FormatJunit, AScanHasACaseATarget) {
  Scan scan = plain_scan();
  std::string text = rendered(scan, Format::junit, {});
  EXPECT_HAS(text, "<testsuite name=\"/opt/x.whl\" tests=\"4\" failures=\"1\"");
  EXPECT_HAS(text, "<testcase classname=\"/opt/x.whl!x/libx.so\" name=\"sm_90a\"/>");
  EXPECT_HAS(text, "<testcase classname=\"/opt/x.whl!x/libx.so\" name=\"sm_61\">\n      <failure");
  scan.findings[0].need.clear();  // damage: of no target
  scan.findings[0].devices.clear();
  text = rendered(scan, Format::junit, {});
  EXPECT_HAS(text, "tests=\"5\" failures=\"1\"");
  EXPECT_HAS(text, "name=\"device code\">\n      <failure");
  scan.targets.clear();
  text = rendered(scan, Format::junit, {});
  EXPECT_HAS(text, "tests=\"2\" failures=\"1\"");
}

TEST(FormatGithub, PropertiesAndMessagesAreEscaped) {
  Finding one = finding(Cause::unknown);
  one.headline = "50% a:b,c";
  one.where = {{"/src/a,b:c%.py", 17, "step", "", 0, true}};
  ASSERT_EQ(setenv("GITHUB_WORKSPACE", "/src", 1), 0);
  const std::string text = rendered(analysis_of({one}), Format::github, {});
  unsetenv("GITHUB_WORKSPACE");
  EXPECT_EQ(text,
            "::error file=a%2Cb%3Ac%25.py,line=17,title=kshim%3A a failure of CUDA's whose cause nothing "
            "here shows::"
            "50%25 a:b,c.%0AFix: Rebuild%0A    nvcc -o libx.so SOURCES\n");
  EXPECT_EQ(rendered(analysis_of({one}), Format::github, {}),
            "::error title=kshim%3A a failure of CUDA's whose cause nothing here shows::"
            "50%25 a:b,c.%0AFix: Rebuild%0A    nvcc -o libx.so SOURCES%0AFile: /src/a,b:c%25.py:17\n");
  EXPECT_EQ(rendered(analysis_of({}), Format::github, {}), "");
}

TEST(FormatGithub, FilesOfTheWorkspaceAreRelativeToIt) {
  ASSERT_EQ(setenv("GITHUB_WORKSPACE", "/opt", 1), 0);
  const std::string github = rendered(plain_scan(), Format::github, {});
  const std::string sarif = rendered(plain_scan(), Format::sarif, {});
  unsetenv("GITHUB_WORKSPACE");
  EXPECT_TRUE(github.starts_with("::error file=x.whl,title=")) << github;
  EXPECT_HAS(sarif, "\"uri\": \"x.whl\"");
  EXPECT_TRUE(rendered(plain_scan(), Format::github, {}).starts_with("::error title="));
}

TEST(FormatGithub, NamesOfFilesKeepTheirLetters) {
  Finding one = finding(Cause::no_image_for_arch);
  one.failed_kernel.clear();
  one.kernels.clear();
  EXPECT_HAS(rendered(analysis_of({one}), Format::github, {}),
             "::libx.so has no code for NVIDIA GeForce GTX 1080 (6.1).%0A");
}

TEST(FormatGithub, ErrorsComeFirst) {
  const std::string text = rendered(
      analysis_of({finding(Cause::compiled_out), finding(Cause::jit_tax), finding(Cause::invalid_image)}),
      Format::github, {});
  EXPECT_LT(text.find("::error"), text.find("::warning"));
  EXPECT_LT(text.find("::warning"), text.find("::notice"));
}

TEST(FormatGithub, TenOfAKindAndTheLastCountsTheRest) {
  std::vector<Finding> findings(13, finding(Cause::no_image_for_arch));
  findings.resize(23, finding(Cause::compiled_out));
  const std::string text = rendered(analysis_of(findings), Format::github, {});
  EXPECT_EQ(count(text, "::error "), 10U);
  EXPECT_EQ(count(text, "::warning "), 10U);
  EXPECT_EQ(count(text, "::and "), 1U) << "ten warnings need nobody to count them";
  EXPECT_HAS(text,
             "::error title=kshim::and 4 more: GitHub shows 10 of a kind. All of them: --format markdown "
             "-o \"$GITHUB_STEP_SUMMARY\"\n::warning");
}

TEST(FormatSarif, FingerprintsDoNotDependOnTheRun) {
  const auto print = [](const Finding& finding) {
    const std::string text = rendered(analysis_of({finding}), Format::sarif, {});
    const std::size_t at = text.find("\"kshim/v1\"");
    return text.substr(at, text.find('\n', at) - at);
  };
  const Finding one = finding(Cause::no_image_for_arch);
  Finding again = one;
  again.object = "/another/checkout/libx.so";
  again.evidence = {{EvidenceId::rule, "Another sentence.", {"r/other.77.jsonl", 9}}};
  again.count = 12;
  again.confidence = 0.5;
  EXPECT_EQ(print(one), print(again));
  again.need = "sm_75";
  EXPECT_NE(print(one), print(again));
}

TEST(FormatSarif, TwinsHaveFingerprintsOfTheirOwn) {
  const Finding one = finding(Cause::no_image_for_arch);
  const std::string text = rendered(analysis_of({one, one}), Format::sarif, {});
  EXPECT_EQ(count(text, ":1\""), 2U) << "under either name";
  EXPECT_EQ(count(text, ":2\""), 2U);
}

TEST(FormatSarif, AMemberIsNotAFile) {
  const std::string text = rendered(plain_scan(), Format::sarif, {});
  EXPECT_HAS(text, "\"uri\": \"opt/x.whl\"");
  EXPECT_HAS(text, "\"fullyQualifiedName\": \"x/libx.so\"");
}

TEST(FormatJson, AScanNamesWhatTheContractNames) {
  Scan scan = plain_scan();
  std::string text = rendered(scan, Format::json, {});
  EXPECT_TRUE(text.starts_with(
      "{\n  \"schema\": \"kshim-scan/1\",\n  \"objects\": [\n    {\n      \"path\": \"/opt/x.whl\""))
      << text;
  EXPECT_HAS(text, "\"driver\": \"12.8\"");
  EXPECT_EQ(text.find("\"demangled\""), std::string::npos);
  scan.objects[0].member.clear();
  scan.objects[0].kernels.emplace();
  scan.objects[0].kernels->push_back({"_Z1fv", "f()", {{"sm_80", 16, 0, 0, 1024}}});
  text = rendered(scan, Format::json, {});
  EXPECT_HAS(text, "\"member\": null");
  EXPECT_HAS(text, "\"demangled\": \"f()\"");
}

}  // namespace
}  // namespace kshim::test
