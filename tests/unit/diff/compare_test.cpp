// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "analyzer/compare/diff.h"
#include "tests/support/command_names.h"
namespace kshim::test {
namespace {

/// "sm_75 sm_80 compute_90@8.4": one image each, of 1000 bytes.
Object object(const std::string& images, const std::string& name = "libx.so") {
  Object out{.name = "/side/" + name, .place = name};
  for (std::size_t at = 0; at < images.size();) {
    const std::size_t end = std::min(images.find(' ', at), images.size());
    const std::string word = images.substr(at, end - at);
    const std::string arch = word.substr(0, word.find('@'));
    ImageCount row;
    row.candidate.kind = arch.starts_with("compute_") ? image::ImageKind::ptx
                         : arch.starts_with("lto_")   ? image::ImageKind::ltoir
                                                      : image::ImageKind::cubin;
    row.candidate.arch = *image::parse_arch(arch);
    if (word.size() > arch.size()) row.candidate.isa = *image::parse_version(word.substr(arch.size() + 1));
    row.count = 1;
    row.bytes = 1000;
    out.images.push_back(row);
    at = end + 1;
  }
  return out;
}

Diff diff_of(Side a, Side b, const DiffRequest& options = {}) {
  Diff out;
  out.request = options;
  out.a = std::move(a);
  out.b = std::move(b);
  compare_sides(out);
  return out;
}
Side side(std::vector<Object> objects) {
  Side out;
  out.path = "side";
  out.objects = std::move(objects);
  return out;
}
/// "lost architecture sm_75"
std::vector<std::string> changes(const Diff& diff) {
  std::vector<std::string> out;
  for (const Change& change : diff.changes)
    out.push_back(std::string(std::array{"lost", "gained", "changed",
                                         "same"}[static_cast<std::size_t>(change.effect)]) +
                  " " + change.what + (change.arch.empty() ? "" : " " + change.arch));
  return out;
}
std::vector<std::string> of_images(const std::string& a, const std::string& b,
                                   const DiffRequest& options = {}) {
  return changes(diff_of(side({object(a)}), side({object(b)}), options));
}
using Names = std::vector<std::string>;

struct Row {
  const char* why;
  const char* a;
  const char* b;
  Names expected;
};

TEST(DiffImages, Rows) {
  for (const Row& row : std::vector<Row>{
           {"the same", "sm_75 compute_90@8.4", "sm_75 compute_90@8.4", {}},
           {"no PTX that would serve it", "sm_70 sm_90", "sm_90", {"lost architecture sm_70"}},
           {"an older minor serves it, and yet it is gone",
            "sm_80 sm_86",
            "sm_80",
            {"lost architecture sm_86"}},
           {"one more", "sm_90", "sm_90 sm_103", {"gained architecture sm_103"}},
           {"locked to one GPU",
            "sm_90",
            "sm_90a",
            {"lost architecture sm_90", "gained architecture sm_90a"}},
           {"PTX of an older architecture serves all that the newer served",
            "sm_90 compute_121@8.8",
            "sm_90 compute_120@8.8",
            {"gained ptx compute_120", "changed ptx compute_121"}},
           {"a newer driver is needed",
            "sm_90 compute_121@8.8",
            "sm_90 compute_121@9.0",
            {"lost ptx-isa compute_121"}},
           {"an older driver will do",
            "sm_90 compute_121@9.0",
            "sm_90 compute_121@8.8",
            {"gained ptx-isa compute_121"}},
           {"what can be linked", "lto_90", "lto_80", {"lost ltoir lto_90", "gained ltoir lto_80"}}}) {
    // Which GPUs there are is the table's to say.
    Names found = of_images(row.a, row.b);
    std::erase_if(found, [](const std::string& text) { return text.find(" gpu ") != std::string::npos; });
    EXPECT_EQ(found, row.expected) << row.why;
  }
}

TEST(DiffImages, PtxGoneIsWhatTheNewestGpusLose) {
  const Names found = of_images("sm_90 compute_90@8.4", "sm_90");
  EXPECT_NE(std::find(found.begin(), found.end(), "lost ptx compute_90"), found.end());
  const auto gpus = std::find_if(found.begin(), found.end(),
                                 [](const std::string& text) { return text.starts_with("lost gpu "); });
  ASSERT_NE(gpus, found.end());
  EXPECT_NE(gpus->find("12.0"), std::string::npos) << *gpus;
  EXPECT_EQ(gpus->find("9.0"), std::string::npos) << *gpus;
}

TEST(DiffImages, ADriverThatReadsTheNewPtxIsNotHarmed) {
  const auto with = [](image::Version driver) {
    DiffRequest options;
    options.driver = driver;
    return of_images("sm_90 compute_121@8.8", "sm_90 compute_121@9.0", options);
  };
  EXPECT_EQ(with({13, 0}), Names{"changed ptx-isa compute_121"});
  const Names old = with({12, 9});
  EXPECT_NE(std::find(old.begin(), old.end(), "lost ptx-isa compute_121"), old.end());
}

TEST(DiffImages, TargetsAloneDecide) {
  DiffRequest options;
  options.targets = {{{8, 6}, {}}};
  EXPECT_FALSE(
      diff_of(side({object("sm_70 sm_80 sm_86")}), side({object("sm_80")}), options).has(Effect::lost));
  EXPECT_EQ(of_images("sm_86", "compute_80@8.0", options).front(), "lost target sm_86")
      << "compiled at load now";
  EXPECT_EQ(of_images("compute_80@8.0", "sm_86", options).front(), "gained target sm_86");
  EXPECT_EQ(of_images("sm_86", "sm_90", options).front(), "lost target sm_86");
  // New PTX harms only the GPUs that it serves.
  EXPECT_FALSE(
      diff_of(side({object("sm_86 compute_90@8.4")}), side({object("sm_86 compute_90@9.0")}), options)
          .has(Effect::lost));
  EXPECT_TRUE(diff_of(side({object("sm_90 compute_80@8.4")}), side({object("sm_90 compute_80@9.0")}), options)
                  .has(Effect::lost));
}

TEST(DiffImages, ModulesThatWereJudgedTellMoreThanArchitectures) {
  DiffRequest options;
  options.targets = {{{8, 6}, {}}};
  Object whole = object("sm_86");
  Object part = whole;
  whole.targets[options.targets[0]] = Outcome::sass;
  part.targets[options.targets[0]] = Outcome::part;
  EXPECT_EQ(changes(diff_of(side({whole}), side({part}), options)), Names{"lost target sm_86"});
}

TEST(DiffImages, FewerImagesAreNamed) {
  Object many = object("sm_80");
  many.images[0].count = 10;
  EXPECT_EQ(changes(diff_of(side({many}), side({object("sm_80")}))), Names{"changed images sm_80"});
}

TEST(DiffObjects, GoneAndNew) {
  DiffRequest none;
  none.targets = {{{12, 0}, {}}};
  const auto files = [](const DiffRequest& options) {
    return changes(diff_of(side({object("sm_80"), object("sm_80", "old.so")}),
                           side({object("sm_80"), object("sm_90", "new.so")}), options));
  };
  EXPECT_EQ(files({}), (Names{"lost object", "gained object"}));
  EXPECT_EQ(files(none), (Names{"changed object", "changed object"})) << "served no GPU that was asked for";
}

TEST(DiffKernels, GoneFromTheFileOrFromOneImage) {
  Object a = object("sm_80 sm_90");
  Object b = a;
  a.kernels = {{"f()", {"sm_80", "sm_90"}}, {"g()", {"sm_80", "sm_90"}}, {"h()", {"sm_80"}}};
  b.kernels = {{"f()", {"sm_80", "sm_90"}}, {"g()", {"sm_90"}}, {"i()", {"sm_80"}}};
  const Diff diff = diff_of(side({a}), side({b}));
  EXPECT_EQ(changes(diff), (Names{"lost kernel", "lost kernel sm_80", "gained kernel"}));
  EXPECT_EQ(diff.changes[0].kernels, Names{"h()"});
  EXPECT_EQ(diff.changes[1].kernels, Names{"g()"});
  // An architecture that is gone is named once and not for each kernel.
  Object narrow = object("sm_90");
  narrow.kernels = {{"f()", {"sm_90"}}, {"g()", {"sm_90"}}, {"h()", {}}};
  const Names found = changes(diff_of(side({a}), side({narrow})));
  EXPECT_EQ(std::count(found.begin(), found.end(), "lost architecture sm_80"), 1);
  EXPECT_EQ(std::count_if(found.begin(), found.end(),
                          [](const std::string& text) { return text.starts_with("lost kernel"); }),
            0);
}

SideFinding finding(const std::string& cause, const std::string& file, const std::string& need,
                    Severity severity = Severity::error) {
  return {.cause = cause,
          .severity = severity,
          .object = file,
          .need = need,
          .code = 209,
          .text = cause + " of " + file};
}
Side reports(std::vector<SideFinding> findings) {
  Side out;
  out.reports = true;
  out.verdict = "gap";
  out.devices = {"A (8.0)"};
  out.findings = std::move(findings);
  return out;
}

TEST(DiffFindings, MendedBrokenAndStayed) {
  const Diff diff = diff_of(reports({finding("no-image-for-arch", "/old/libx.so.1", "sm_86"),
                                     finding("invalid-image", "/old/y", "")}),
                            reports({finding("no-image-for-arch", "/new/libx.so.2", "sm_86"),
                                     finding("jit-compiler-missing", "/z", "sm_86")}));
  EXPECT_EQ(changes(diff), (Names{"lost finding sm_86", "gained finding", "same finding sm_86"}));
  EXPECT_EQ(diff.changes[0].after, "jit-compiler-missing");
  EXPECT_EQ(diff.changes[1].before, "invalid-image");
  EXPECT_TRUE(diff.has(Effect::lost));
  EXPECT_EQ(summary_of(diff), "1 finding is new or worse; 1 finding is fixed; 1 finding is as before");
  EXPECT_TRUE(diff.notes.empty());
}

TEST(DiffFindings, AnotherCauseOfTheSameTrouble) {
  const Diff diff = diff_of(reports({finding("no-image-for-arch", "/x.so", "sm_86")}),
                            reports({finding("ptx-newer-than-driver", "/x.so", "sm_86")}));
  EXPECT_EQ(changes(diff), Names{"changed finding sm_86"});
  EXPECT_FALSE(diff.has(Effect::lost));
  const SideFinding info = finding("latent-gap", "/x.so", "sm_86", Severity::info);
  EXPECT_TRUE(
      diff_of(reports({info}), reports({finding("no-image-for-arch", "/x.so", "sm_86")})).has(Effect::lost));
  EXPECT_FALSE(diff_of(reports({}), reports({info})).has(Effect::lost)) << "a note is no loss";
  EXPECT_FALSE(diff_of(reports({info}), reports({})).has(Effect::gained));
}

TEST(DiffFindings, OfOtherGpusDoNotCountWithTargets) {
  DiffRequest options;
  options.targets = {{{9, 0}, {}}};
  EXPECT_FALSE(diff_of(reports({}), reports({finding("no-image-for-arch", "/x.so", "sm_86")}), options)
                   .has(Effect::lost));
  EXPECT_TRUE(diff_of(reports({}), reports({finding("no-image-for-arch", "/x.so", "sm_90")}), options)
                  .has(Effect::lost));
  EXPECT_TRUE(
      diff_of(reports({}), reports({finding("invalid-image", "/x.so", "")}), options).has(Effect::lost));
}

TEST(DiffFindings, AreOneForOne) {
  const SideFinding one = finding("no-image-for-arch", "/x.so", "sm_86");
  const Diff diff = diff_of(reports({one, one, one}), reports({one}));
  EXPECT_EQ(diff.count(Effect::same), 1U);
  EXPECT_EQ(diff.count(Effect::gained), 2U);
}

TEST(DiffNotes, SayWhatWeakensIt) {
  Side b = reports({});
  b.devices = {"B (9.0)"};
  b.verdict = "incomplete";
  b.notes = {"torn"};
  const Diff diff = diff_of(reports({}), b);
  ASSERT_GE(diff.notes.size(), 3U);
  EXPECT_EQ(diff.notes[0], "the GPUs differ: A is of A (8.0), B of B (9.0)");
  EXPECT_NE(diff.notes[1].find("not necessarily fixed"), std::string::npos);
  EXPECT_EQ(diff.notes[2], "B: torn");
}

}  // namespace
}  // namespace kshim::test
