// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <set>
#include <string>

#include "analyzer/owner/databases.h"
#include "analyzer/owner/finder.h"
#include "output_of.h"
#include "tests/unit/analyzer/report_text.h"

namespace kshim::test {
namespace {

namespace fs = std::filesystem;

class Dpkg : public ::testing::Test {
 protected:
  void list(const std::string& package, std::string_view files) {
    root_.write("var/lib/dpkg/info/" + package + ".list", files);
  }
  void status(std::string_view text) { root_.write("var/lib/dpkg/status", text); }
  std::string owner(const std::string& path) {
    DpkgDatabase database(root_.path(), budget_);
    std::set<std::string> answers;
    for (int question = 0; question < 20;
         ++question) {  // the first are answered in another way than the rest
      const auto found = database.owner(names_of(root_.path(), path));
      answers.insert(found ? found->label() : "nobody");
    }
    return fmt::format("{}", fmt::join(answers, " or "));
  }
  TemporaryFolder root_;
  LookupBudget budget_;
};

TEST_F(Dpkg, AFileBelongsToTheListThatHasIt) {
  list("libfoo", "/.\n/usr\n/usr/lib\n/usr/lib/libfoo.so.1\n");
  list("libbar", "/usr/lib/libfoo.so.1.bak\n");
  status(
      "Package: libfoo\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1.2-3+b1\n\n"
      "Package: libbar\nVersion: 9\n");
  EXPECT_EQ(owner("/usr/lib/libfoo.so.1"), "libfoo 1.2-3+b1");
  EXPECT_EQ(owner("/usr/lib/libfoo.so"), "nobody");
}
TEST_F(Dpkg, TheArchitectureIsPartOfAListsName) {
  list("libc6:amd64", "/usr/lib/x86_64-linux-gnu/libc.so.6\n");
  list("libc6:i386", "/usr/lib/i386-linux-gnu/libc.so.6\n");
  status(
      "Package: libc6\nArchitecture: amd64\nVersion: 2.36-9\n\nPackage: libc6\nArchitecture: i386\nVersion: "
      "2.36-8\n\n");
  EXPECT_EQ(owner("/usr/lib/x86_64-linux-gnu/libc.so.6"), "libc6 2.36-9");
  EXPECT_EQ(owner("/usr/lib/i386-linux-gnu/libc.so.6"), "libc6 2.36-8");
}
TEST_F(Dpkg, AMergedUsrIsOneFolderWithTwoNames) {
  fs::create_directories(root_.path() / "usr/lib");
  fs::create_symlink("usr/lib", root_.path() / "lib");
  list("old", "/lib/libold.so\n");
  list("new", "/usr/lib/libnew.so\n");
  status("Package: old\nVersion: 1\n\nPackage: new\nVersion: 2\n");
  EXPECT_EQ(owner("/usr/lib/libold.so"), "old 1");
  EXPECT_EQ(owner("/lib/libnew.so"), "new 2");
}
TEST_F(Dpkg, FoldersThatAreTwoAreNotMerged) {
  fs::create_directories(root_.path() / "usr/lib");
  fs::create_directories(root_.path() / "lib");
  list("old", "/lib/libold.so\n");
  EXPECT_EQ(owner("/usr/lib/libold.so"), "nobody");
}
TEST_F(Dpkg, ALinkBelongsToTheFileItLeadsTo) {
  root_.write("usr/local/cuda-13.0/lib/libcublas.so.13", "x");
  fs::create_symlink("cuda-13.0", root_.path() / "usr/local/cuda");
  list("libcublas-13-0", "/usr/local/cuda-13.0/lib/libcublas.so.13\n");
  EXPECT_EQ(owner("/usr/local/cuda/lib/libcublas.so.13"), "libcublas-13-0");
}
TEST_F(Dpkg, ALinkOutOfTheRootLeadsNowhere) {
  fs::create_directories(root_.path() / "usr/lib");
  fs::create_symlink("/etc/passwd", root_.path() / "usr/lib/libx.so");
  fs::create_symlink("liby.so", root_.path() / "usr/lib/liby.so");
  list("base", "/etc/passwd\n");
  EXPECT_EQ(owner("/usr/lib/libx.so"), "nobody");
  EXPECT_EQ(owner("/usr/lib/liby.so"), "nobody");
}
TEST_F(Dpkg, WithoutStatusThereIsNoVersion) {
  list("libfoo", "/usr/lib/libfoo.so.1\n");
  EXPECT_EQ(owner("/usr/lib/libfoo.so.1"), "libfoo");
}
TEST_F(Dpkg, TornAndStrangeStatusLinesAreSkipped) {
  list("libfoo", "/usr/lib/libfoo.so.1\n");
  using namespace std::string_view_literals;
  status("Version: 7\n\n: \nPackage\n Package: libfoo\nPackage:libfoo\nVersion:3\n\0\n\nPackage: libfoo"sv);
  EXPECT_EQ(owner("/usr/lib/libfoo.so.1"), "libfoo 3");
}
TEST_F(Dpkg, NamesThatNoPackageHasAreNoLists) {
  list("../evil name\x1b[31m", "/usr/lib/libfoo.so.1\n");
  root_.write("var/lib/dpkg/info/UPPER.list", "/usr/lib/libfoo.so.1\n");
  root_.write("var/lib/dpkg/info/.list", "/usr/lib/libfoo.so.1\n");
  root_.write("var/lib/dpkg/info/a\x1b[31m.list", "/usr/lib/libfoo.so.1\n");
  EXPECT_EQ(owner("/usr/lib/libfoo.so.1"), "nobody");
}
TEST_F(Dpkg, OverTheBudgetNobodyOwnsAnything) {
  list("libfoo", "/usr/lib/libfoo.so.1\n");
  budget_.bytes = 5;
  EXPECT_EQ(owner("/usr/lib/libfoo.so.1"), "nobody");
}

// What dpkg itself says of this machine: of every 40th file of all packages, and of the C library by both its
// names.
TEST(DpkgOfThisMachine, SaysWhatDpkgSays) {
  if (output_of("command -v dpkg-query").empty()) GTEST_SKIP() << "no dpkg here";
  const std::string files = output_of(
      "dpkg-query -W -f='${binary:Package}\\n' | xargs dpkg-query -L | grep '\\.so\\|/bin/' | sort -u | awk "
      "'NR % 40 == 0'");
  std::map<std::string, std::string> versions;
  each_line(output_of("dpkg-query -W -f='${binary:Package} ${Version}\\n'"), [&](std::string_view line) {
    versions.emplace(line.substr(0, line.find(' ')), line.substr(line.find(' ') + 1));
    return true;
  });
  std::string paths;
  unsigned some = 0;
  each_line(files, [&](std::string_view line) {
    if (line.find_first_of("'*?[\\ ") == std::string_view::npos && ++some <= 200) {
      paths += ' ';
      paths += line;
    }
    return true;
  });
  LookupBudget budget;
  DpkgDatabase database("/", budget);
  unsigned asked = 0;
  // A line a file: "libc6:amd64: /lib/x86_64-linux-gnu/libc.so.6".
  each_line(output_of("dpkg-query -S" + paths + " 2>/dev/null"), [&](std::string_view line) {
    const std::size_t colon = line.rfind(": ");
    if (line.starts_with("diversion") || colon == std::string_view::npos || line.find(", ") < colon)
      return true;
    const std::string binary(line.substr(0, colon));
    const std::string path(line.substr(colon + 2));
    const auto found = database.owner(names_of("/", path));
    EXPECT_TRUE(found) << path;
    if (found) {
      EXPECT_EQ(found->label(), binary.substr(0, binary.find(':')) + " " + versions[binary]) << path;
    }
    ++asked;
    return true;
  });
  EXPECT_GT(asked, 10U);
  const std::string libc = output_of("dpkg-query -L libc6 | grep '/libc\\.so\\.6$'");
  if (libc.empty() || !fs::is_symlink("/lib")) return;
  const std::string other = libc.starts_with("/usr/") ? libc.substr(4) : "/usr" + libc;
  for (const std::string& name : {libc, other}) {
    const auto found = database.owner(names_of("/", name));
    ASSERT_TRUE(found) << name;
    EXPECT_EQ(found->name, "libc6");
  }
}

}  // namespace
}  // namespace kshim::test
