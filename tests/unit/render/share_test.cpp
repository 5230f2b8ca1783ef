// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/share.h"

#include <gtest/gtest.h>

#include "analyzer/render/ci_formats.h"
#include "analyzer/render/document.h"
#include "analyzer/render/render.h"
#include "analyzer/verbs/analysis.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

struct Row {
  const char* before;
  const char* after;
};

TEST(Shortener, HomesBecomeATilde) {
  const Shortener shortener({}, "/data/people/ada/");
  for (const Row& row : std::vector<Row>{
           {"/home/ada", "~"},
           {"/home/ada/x.so", "~/x.so"},
           {"/home/bob/x.so", "~/x.so"},
           {"/Users/ada/x", "~/x"},
           {"/root/x", "~/x"},
           {"/root", "~"},
           {"/rooted/x", "/rooted/x"},
           {"/opt/root/x", "/opt/root/x"},
           {"/mnt/home/ada/x", "~/x"},
           {"/mnt/c/Users/ada/x", "~/x"},
           {"/opt/app/home/lib/x.so", "/opt/app/home/lib/x.so"},
           {"build/home/ada", "build/home/ada"},
           {"/home/", "/home/"},
           {"/home", "/home"},
           {"-I/home/ada/include -L/mnt/home/ada/lib", "-I~/include -L~/lib"},
           {"PATH=/home/ada/bin:/home/ada/.local/bin:/usr/bin", "PATH=~/bin:~/.local/bin:/usr/bin"},
           {"reads '/home/ada/x', then \"/home/ada/y\".", "reads '~/x', then \"~/y\"."},
           {"https://example.org/home/ada/x", "https://example.org/home/ada/x"},
           {"file:///home/ada/x", "file://~/x"},
           {"/data/people/ada/x", "~/x"},
           {"/data/people/adam/x", "/data/people/adam/x"},
           {"/mnt/data/people/ada/x", "/mnt/data/people/ada/x"},
           {"/home/j\u00fcrgen/x", "~/x"},
       }) {
    EXPECT_EQ(shortener.text(row.before), row.after);
  }
}

TEST(Shortener, CommandsStillFindTheHome) {
  const Shortener shortener({}, "");
  for (const Row& row : std::vector<Row>{
           {"cp /home/ada/x /tmp", "cp $HOME/x /tmp"},
           {"cp --to=/home/ada/x", "cp --to=$HOME/x"},
           {"cp '/home/ada/my x' y", "cp \"$HOME\"'/my x' y"},
           {"cp 'a /home/ada/x'", "cp 'a '\"$HOME\"'/x'"},
       }) {
    EXPECT_EQ(shortener.command(row.before), row.after);
  }
}

TEST(Shortener, UuidsKeepEightDigits) {
  const Shortener shortener({}, "");
  EXPECT_EQ(shortener.text("GPU-558b273a-dfb7-56cd-a5f3-8dac0b3af1b1."), "GPU-558b273a.");
  EXPECT_EQ(shortener.text("MIG-558B273A-DFB7-56CD-A5F3-8DAC0B3AF1B1"), "MIG-558B273A");
  EXPECT_EQ(shortener.text("558b273a-dfb7-56cd-a5f3-8dac0b3af1b"), "558b273a-dfb7-56cd-a5f3-8dac0b3af1b");
  EXPECT_EQ(shortener.text("558b273a-dfb7-56cd-a5f3"), "558b273a-dfb7-56cd-a5f3");
}

TEST(Shortener, HostsAreNamedByNumber) {
  const Shortener one({"node7.example.org", "node7.example.org"}, "");
  EXPECT_EQ(one.text("kshim-report/node7.4711.jsonl on node7.example.org"),
            "kshim-report/host.4711.jsonl on host");
  const Shortener two({"node7", "node70", "localhost", "ab"}, "");
  EXPECT_EQ(two.text("node7.1.jsonl node70.1.jsonl node700 mynode7 node7-x localhost ab"),
            "host1.1.jsonl host2.1.jsonl node700 mynode7 node7-x localhost ab");
}

TEST(Shortener, HostileTextTakesNoTime) {
  std::vector<std::string> hosts;
  for (int i = 0; i < 1000; ++i) hosts.push_back("node" + std::to_string(i));
  const Shortener shortener(std::move(hosts), "/home/ada");
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "/home/home";
  for (int i = 0; i < 20'000; ++i) text += "-a.";
  EXPECT_FALSE(shortener.text(text).empty());
}

TEST(Share, FullShortensNothing) {
  Analysis analysis;
  analysis.verdict = Verdict::gap;
  analysis.processes.resize(1);
  analysis.processes[0].host = "node7";
  analysis.processes[0].report = "/home/ada/kshim-report/node7.1.jsonl";
  analysis.devices.resize(1);
  analysis.devices[0].uuid = "GPU-558b273a-dfb7-56cd-a5f3-8dac0b3af1b1";
  analysis.findings.resize(1);
  analysis.findings[0].object = "/home/ada/x.so";
  analysis.findings[0].fixes.resize(1);
  analysis.findings[0].fixes[0].commands = {"nvcc -o /home/ada/x.so"};
  for (const Format format : {Format::markdown, Format::html}) {
    const std::string brief = rendered(analysis, format, {});
    for (const char* secret : {"node7", "ada", "dfb7"})
      EXPECT_EQ(brief.find(secret), std::string::npos) << secret;
    EXPECT_NE(brief.find("$HOME/x.so"), std::string::npos);
    const std::string full = rendered(analysis, format, {.full = true});
    for (const char* kept : {"/home/ada/kshim-report/node7.1.jsonl", "8dac0b3af1b1", "-o /home/ada/x.so"})
      EXPECT_NE(full.find(kept), std::string::npos) << kept;
  }
}

std::string paragraph(const Line& line) {
  const auto page_made = markdown_page(false);
  Document& page = *page_made;
  page.paragraph(line);
  return page.take();
}

TEST(Markdown, TextStaysText) {
  for (const Row& row : std::vector<Row>{
           {"a*b_c`d[e]<f>&g|h~i\\", "a\\*b_c\\`d\\[e\\]\\<f\\>\\&g\\|h\\~i\\\\\n"},
           {"__init__ _it_ sm_80", "\\_\\_init\\_\\_ \\_it\\_ sm_80\n"},
           {"1. one", "1\\. one\n"},
           {"12) one", "12\\) one\n"},
           {"- one", "\\- one\n"},
           {"# one", "\\# one\n"},
           {"=== one", "\\=== one\n"},
           {"    indented", "indented\n"},
           {"by @octocat", "by `@octocat`\n"},
           {"see #12", "see `#12`\n"},
           {"see https://x.example/y", "see `https://x.example/y`\n"},
           {"costs $1$", "costs `$1$`\n"},
           {"train.py:100: no", "`train.py:100:` no\n"},
           {"`@x`", "`` `@x` ``\n"},
       }) {
    EXPECT_EQ(paragraph({{row.before}}), row.after);
  }
}

TEST(Markdown, CodeSpansHoldAnything) {
  EXPECT_EQ(paragraph({code("f<int>(A*)")}), "`f<int>(A*)`\n");
  EXPECT_EQ(paragraph({code("a`b``c")}), "```a`b``c```\n");
  EXPECT_EQ(paragraph({code("`a")}), "`` `a ``\n");
  EXPECT_EQ(paragraph({code("a"), code("b")}), "`a` `b`\n");
}

TEST(Markdown, TablesKeepTheirCells) {
  const auto page_made = markdown_page(false);
  Document& page = *page_made;
  page.table({"A", "B"}, {{{code("a|b")}, {{"c|d"}}}, {{{"1"}}}});
  EXPECT_EQ(page.take(), "| A | B |\n| --- | --- |\n| `a\\|b` | c\\|d |\n| 1 | |\n");
}

TEST(Markdown, FencesAreLongerThanWhatTheyHold) {
  const auto page_made = markdown_page(false);
  Document& page = *page_made;
  page.commands({"echo ````", "ls"});
  EXPECT_EQ(page.take(), "`````sh\necho ````\nls\n`````\n");
}

TEST(Markdown, FitsIntoAnIssue) {
  Finding finding;
  finding.severity = Severity::error;
  for (int i = 0; i < 5000; ++i) finding.kernels.push_back(std::to_string(i) + std::string(2000, 'k'));
  finding.images.resize(500);
  finding.evidence.resize(500);
  Analysis analysis;
  analysis.verdict = Verdict::gap;
  analysis.findings = {finding};
  analysis.processes.resize(3000);
  analysis.devices.resize(3000);
  analysis.notes.assign(1000, "a note");
  EXPECT_LT(rendered(analysis, Format::markdown, {}).size(), 65'536U);
  EXPECT_GT(rendered(analysis, Format::markdown, {.verbose = true}).size(), 1'000'000U);
}

TEST(Markdown, WhatIsFoldedGoesFirst) {
  const auto page_made = markdown_page(false);
  Document& page = *page_made;
  page.heading(1, {{"title"}});
  for (int i = 0; i < 8; ++i) {
    page.paragraph({{"paragraph " + std::to_string(i)}});
    page.open_details("more");
    page.list({{{"folded " + std::to_string(i) + std::string(20'000, 'x')}}});
    page.close_details();
  }
  const std::string text = page.take();
  EXPECT_LE(text.size(), 65'536U);
  for (const char* kept : {"# title", "paragraph 7", "folded 0", "folded 1", "folded 2", "**Shortened:**"})
    EXPECT_NE(text.find(kept), std::string::npos) << kept;
  EXPECT_EQ(text.find("folded 4"), std::string::npos);
  const auto large_made = markdown_page(false);
  Document& large = *large_made;
  large.heading(1, {{"title"}});
  for (int i = 0; i < 100; ++i) large.paragraph({{std::string(1000, 'x')}});
  const std::string cut = large.take();
  EXPECT_LE(cut.size(), 65'536U);
  EXPECT_GT(cut.size(), 60'000U);
  EXPECT_NE(cut.find("**Shortened:**"), std::string::npos);
}

TEST(Clipped, CutsBetweenCharacters) {
  EXPECT_EQ(clipped("abcdef", 6), "abcdef");
  EXPECT_EQ(clipped("abcdefg", 6), "abc...");
  EXPECT_EQ(clipped("ab\u00fcdefg", 6), "ab...");
}

TEST(Place, IsALineOfTheCheckoutThenTheUsersOwn) {
  const SourceRoot root("/src", {}, "/src");
  Finding finding;
  EXPECT_EQ(placed({finding}, root, "otherwise.jsonl").front().place.file, "otherwise.jsonl");
  finding.evidence = {{}, {EvidenceId::rule, "", {"r.jsonl", 8}}};
  EXPECT_EQ(place_of(finding, root).file, "r.jsonl");
  EXPECT_EQ(place_of(finding, root).line, 8U);
  finding.object = "/x.so";
  EXPECT_EQ(place_of(finding, root).file, "/x.so");
  EXPECT_EQ(place_of(finding, root).line, 0U);
  finding.where = {{"", 0, "f", "/x.so", 4, false}, {"/train.py", 17, "step", "", 0, true}};
  EXPECT_EQ(place_of(finding, root).file, "/train.py");
  EXPECT_EQ(place_of(finding, root).line, 17U);
  finding.where.push_back({"/src/main.py", 3, "main", "", 0, true});
  EXPECT_EQ(place_of(finding, root).file, "/src/main.py");
  EXPECT_EQ(place_of(finding, root).line, 3U);
}

TEST(SourceRoot, NamesWhatIsInsideFromThere) {
  const SourceRoot root("/src/app/", {"/link"}, "/src/app/sub");
  const auto name = [&](const char* path) {
    const SourceRoot::Named named = root.name(path);
    return named.path + (named.inside ? " inside" : "");
  };
  EXPECT_EQ(name("/src/app/lib/x.so"), "lib/x.so inside");
  EXPECT_EQ(name("/src/app//x.so"), "x.so inside");
  EXPECT_EQ(name("/link/x.so"), "x.so inside");
  EXPECT_EQ(name("x.so"), "sub/x.so inside");
  EXPECT_EQ(name("./dist/x.so"), "sub/dist/x.so inside");
  EXPECT_EQ(name("../x.so"), "x.so inside");
  EXPECT_EQ(name("../../x.so"), "/src/x.so");
  EXPECT_EQ(name("/src/app/../secret/x.so"), "/src/secret/x.so");
  EXPECT_EQ(name("/src/application/x.so"), "/src/application/x.so");
  EXPECT_EQ(name("/src/app"), "/src/app");
  EXPECT_EQ(name(""), "");
}

TEST(SourceRoot, TheWholeMachineIsNone) {
  const SourceRoot root("/", {"/"}, "/");
  EXPECT_EQ(root.folder(), "");
  EXPECT_FALSE(root.name("/opt/x.so").inside);
  EXPECT_EQ(SourceRoot("", {}, "").name("x.so").path, "x.so");
}

TEST(Sarif, NoFileHasAnAbsoluteUri) {
  Finding inside;
  inside.object = "/src/a b/x.so";
  Finding outside;
  outside.object = "/opt/y.so";
  const SourceRoot root("/src", {}, "/src");
  const std::string text = sarif_log({.id = "kshim-test/",
                                      .findings = placed({inside, outside}, root, ""),
                                      .notes = {},
                                      .failures = {},
                                      .root = root});
  const auto has = [&](std::string_view what) { return text.find(what) != std::string::npos; };
  EXPECT_TRUE(has("\"uri\": \"a%20b/x.so\",")) << text;
  EXPECT_TRUE(has("\"uriBaseId\": \"%SRCROOT%\"")) << text;
  EXPECT_TRUE(has("\"uri\": \"opt/y.so\",")) << text;
  EXPECT_TRUE(has("\"uriBaseId\": \"%MACHINE%\"")) << text;
  EXPECT_TRUE(has("\"uri\": \"file:///src/\"")) << text;
  EXPECT_TRUE(has("\"uri\": \"file:///\"")) << text;
}

TEST(Sarif, NoMoreResultsThanCodeScanningTakes) {
  const SourceRoot root("/src", {}, "/src");
  std::vector<PlacedFinding> many(25'003);
  const std::string text = sarif_log(
      {.id = "kshim-test/", .findings = std::move(many), .notes = {}, .failures = {}, .root = root});
  std::size_t results = 0;
  for (std::size_t at = text.find("\"ruleIndex\""); at != std::string::npos;
       at = text.find("\"ruleIndex\"", at + 1))
    ++results;
  EXPECT_EQ(results, 25'000U);
  EXPECT_NE(text.find("3 less severe results are left out"), std::string::npos);
}

}  // namespace
}  // namespace kshim::test
