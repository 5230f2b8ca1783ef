// SPDX-License-Identifier: Apache-2.0
// Scans and analyses in JSON, from any source.
#include <gtest/gtest.h>

#include "analyzer/compare/diff.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

bool reads(const std::string& text, Side& side) {
  side = {};
  side.path = "x.json";
  return read_json(text, side);
}

TEST(DiffJson, AScan) {
  Side side;
  ASSERT_TRUE(reads(R"raw({"schema":"kshim-scan/1","objects":[
    {"path":"/w/dist/x.whl","member":"x/_C.so","build_id":"77","package":"x 1.2","package_info":{"name":"x","version":"1.2","installer":"pip"},"bytes":5,
     "images":[{"kind":"cubin","arch":"sm_90a","isa":null,"count":2,"bytes":9},{"kind":"ptx","arch":"compute_90","isa":"8.4","count":1,"bytes":3}],
     "kernels":[{"name":"_Z1fv","demangled":"f()","archs":["sm_90a"]}],
     "targets":[{"target":"sm_75","sass":0,"jit":0,"lacking":2,"verdict":"none"}]},
    {"path":"/w/build/y","member":null,"images":[]}],"findings":[],"notes":["torn"]})raw",
                    side));
  EXPECT_FALSE(side.reports);
  ASSERT_EQ(side.objects.size(), 2U);
  EXPECT_EQ(side.objects[0].name, "/w/dist/x.whl!x/_C.so");
  EXPECT_EQ(side.objects[0].place, "dist/x.whl") << "below the folder that all have in common";
  EXPECT_EQ(side.objects[1].place, "build/y");
  ASSERT_EQ(side.objects[0].images.size(), 2U);
  EXPECT_EQ(side.objects[0].images[0].candidate.arch.suffix, image::Suffix::a);
  EXPECT_EQ(side.objects[0].images[1].candidate.isa, (image::Version{8, 4}));
  EXPECT_EQ(side.objects[0].kernels->at("f()"), std::set<std::string>{"sm_90a"});
  EXPECT_EQ(side.objects[0].targets.at({{7, 5}, {}}), Outcome::none);
  EXPECT_EQ(side.notes, std::vector<std::string>{"torn"});
}

TEST(DiffJson, AnAnalysis) {
  Side side;
  ASSERT_TRUE(reads(
      R"({"schema":"kshim-analysis/1","verdict":"gap","devices":[{"name":"A","compute_capability":"8.6"}],
    "findings":[{"cause":"of-a-later-version","severity":"error","object":"/x/libx.so","need":"sm_86","code":209,"headline":"no code"}]})",
      side));
  EXPECT_TRUE(side.reports);
  EXPECT_EQ(side.devices, std::vector<std::string>{"A (8.6)"});
  ASSERT_EQ(side.findings.size(), 1U);
  EXPECT_EQ(side.findings[0].cause, "of-a-later-version");
  EXPECT_EQ(side.findings[0].text, "libx.so: no code (sm_86)");
  EXPECT_EQ(side.findings[0].code, 209);
}

TEST(DiffJson, WhatIsNeitherIsNamed) {
  Side side;
  for (const char* text : {"", "{", "[]", "null", "{}", R"({"schema":"kshim-scan/2"})", R"({"schema":17})"}) {
    EXPECT_FALSE(reads(text, side)) << text;
    ASSERT_EQ(side.notes.size(), 1U);
    EXPECT_TRUE(side.notes[0].starts_with("x.json: ")) << side.notes[0];
  }
}

// Every value of a valid scan replaced by one of every other type: read, never thrown over.
TEST(DiffJson, WrongTypesAreEmpty) {
  for (const char* value : {"null", "-1", "1e400", "true", "\"\"", "\"\\u0000\\ud83d\"", "[]", "{}", "[[]]",
                            "[{\"arch\":7}]", "99999999999999999999"}) {
    for (const char* key : {"objects", "findings", "notes", "devices", "verdict"}) {
      for (const char* schema : {"kshim-scan/1", "kshim-analysis/1"}) {
        Side side;
        reads(std::string("{\"schema\":\"") + schema + "\",\"" + key + "\":" + value + "}", side);
      }
    }
    for (const char* key :
         {"path", "member", "build_id", "package", "bytes", "images", "kernels", "targets"}) {
      Side side;
      reads(std::string("{\"schema\":\"kshim-scan/1\",\"objects\":[{\"") + key + "\":" + value + "}]}", side);
      Diff diff;
      diff.a = side;
      diff.b = side;
      compare_sides(diff);
      EXPECT_FALSE(diff.has(Effect::lost)) << key << value;
      for (const Format format : kDiffFormats) rendered(diff, format, {.unicode = true});
    }
  }
  Side side;
  EXPECT_FALSE(reads(std::string(1'000'000, '['), side)) << "nor does depth matter";
}

TEST(DiffRender, UntrustedTextIsEscaped) {
  const std::string evil = "\x1b[2J</script><script>alert(1)</script>|`@octocat #1\n::error::x ##[y]";
  Diff diff;
  diff.a.path = diff.b.path = evil;
  diff.a.objects = {{.name = evil, .place = evil, .member = evil}};
  diff.b.objects = {{.name = "b" + evil, .place = evil, .member = evil}};
  diff.a.objects[0].kernels = {{evil, {evil}}, {"f" + evil, {}}};
  diff.b.objects[0].kernels.emplace();
  diff.b.findings = {{.cause = evil, .object = evil, .need = evil, .text = evil}};
  diff.a.notes = {evil};
  compare_sides(diff);
  EXPECT_TRUE(diff.has(Effect::lost));
  for (const Format format : kDiffFormats) {
    const std::string text = rendered(diff, format, {.unicode = true, .verbose = true});
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_EQ(text.find("\n::error::x"), std::string::npos);
    if (format != Format::github) {
      EXPECT_EQ(text.find("##["), std::string::npos) << text;
    }
    if (format == Format::html) {
      EXPECT_EQ(text.find("<script>alert"), std::string::npos);
    }
    if (format == Format::markdown) {
      EXPECT_EQ(text.find("\n@octocat"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace kshim::test
