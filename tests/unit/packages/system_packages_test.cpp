// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "analyzer/owner/databases.h"
#include "output_of.h"
#include "tests/support/command_names.h"
#include "tests/unit/analyzer/report_text.h"

namespace kshim::test {
namespace {

class Rpm : public ::testing::Test {
 protected:
  /// Runs a shell script in place of rpm.
  std::string owner(const std::string& script, const std::string& path = "/usr/lib64/libfoo.so") {
    const auto found = query(script).owner(path);
    return found ? found->label() + " (" + found->manager + ")" : "nobody";
  }
  RpmQuery query(const std::string& script, std::chrono::milliseconds patience = std::chrono::seconds(60)) {
    folder_.write("rpm", "#!/bin/sh\n" + script + "\n");
    const std::string program = (folder_.path() / "rpm").string();
    ::chmod(program.c_str(), 0755);
    return RpmQuery(program, patience);
  }
  TemporaryFolder folder_;
};

TEST_F(Rpm, TheFirstLineOfTheAnswerNamesThePackage) {
  EXPECT_EQ(owner("echo libfoo 2:1.4-7.el9; echo libbar 1-1"), "libfoo 2:1.4-7.el9 (rpm)");
}
TEST_F(Rpm, ThePathIsOneArgumentAndNeverAnOption) {
  const std::string script =
      R"sh([ $# = 5 ] && [ "$4" = -- ] && [ "$5" = "$(cat "$0.path")" ] && echo libfoo 1-1)sh";
  for (const char* path : {"/usr/lib64/a b", "/usr/lib64/$(touch x)", "/usr/lib64/-e"}) {
    folder_.write("rpm.path", path);
    EXPECT_EQ(owner(script, path), "libfoo 1-1 (rpm)") << path;
  }
}
TEST_F(Rpm, ItsEnvironmentIsEmptyButForTheLanguage) {
  EXPECT_EQ(owner(R"([ -z "$HOME$LD_PRELOAD" ] && [ "$LC_ALL" = C ] && echo libfoo 1-1)"),
            "libfoo 1-1 (rpm)");
}
TEST_F(Rpm, AFailureIsNobody) {
  EXPECT_EQ(owner("echo file x is not owned by any package; exit 1"), "nobody");
  EXPECT_EQ(owner("kill -SEGV $$"), "nobody");
  EXPECT_EQ(owner("echo libfoo"), "nobody");
  EXPECT_EQ(owner("echo --index-url=http://x 1-1"), "nobody");
  EXPECT_FALSE(RpmQuery("/nowhere/rpm").owner("/usr/lib64/libfoo.so"));
}
TEST_F(Rpm, AnAnswerWithoutEndIsNobody) { EXPECT_EQ(owner("yes libfoo 1-1"), "nobody"); }
TEST_F(Rpm, WhatDoesNotAnswerIsAskedOnce) {
  RpmQuery rpm = query("echo >>\"$0.asked\"; sleep 100", std::chrono::milliseconds(500));
  EXPECT_FALSE(rpm.owner("/usr/lib64/libfoo.so"));
  EXPECT_FALSE(rpm.owner("/usr/lib64/libbar.so"));
  EXPECT_EQ(std::filesystem::file_size(folder_.path() / "rpm.asked"), 1U);
}

bool runs(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }

// rpm itself, and a database that it made.
TEST_F(Rpm, OfRpmItself) {
  if (!runs("command -v rpmbuild") || !runs("command -v rpm")) GTEST_SKIP() << "no rpm and rpmbuild here";
  const std::string folder = folder_.path().string();
  const std::string library = folder + "/usr/lib64/libfoo.so.1";
  folder_.write("usr/lib64/libfoo.so.1", "");
  folder_.write("usr/lib64/libbar.so.1", "");
  folder_.write("libfoo.spec", R"(Name: libfoo
Epoch: 2
Version: 1.4
Release: 7.el9
Summary: for a test of kshim
License: none
BuildArch: noarch
%description
.
%install
mkdir -p %{buildroot})" + folder + R"(/usr/lib64
echo a >%{buildroot})" + library + "\n%files\n" +
                                   library + "\n");
  ASSERT_TRUE(runs("rpmbuild --define '_topdir " + folder + "/top' -bb " + folder + "/libfoo.spec"));
  const std::string rpm = "rpm --dbpath " + folder + "/db";
  ASSERT_TRUE(runs(rpm + " --initdb"));
  ASSERT_TRUE(runs(rpm + " -i --justdb --nodeps --noscripts " + folder + "/top/RPMS/noarch/*.rpm"));
  const std::string script = "PATH=/usr/bin exec " + rpm + " \"$@\"";
  EXPECT_EQ(owner(script, library), "libfoo 2:1.4-7.el9 (rpm)");
  EXPECT_EQ(owner(script, folder + "/usr/lib64/libbar.so.1"), "nobody");
}

class Dpkg : public ::testing::Test {
 protected:
  /// Runs a shell script in place of dpkg-query.
  std::string owner(const std::string& script, const std::vector<std::string>& names) {
    folder_.write("dpkg-query", "#!/bin/sh\n" + script + "\n");
    const std::string program = (folder_.path() / "dpkg-query").string();
    ::chmod(program.c_str(), 0755);
    DpkgQuery dpkg(program, std::chrono::seconds(60));
    const auto found = dpkg.owner(names);
    return found ? found->label() + " (" + found->manager + ")" : "nobody";
  }
  TemporaryFolder folder_;
};

constexpr const char* kAnswers = R"sh(
if [ "$1" = -S ]; then
  echo 'diversion by dash from: /lib/libfoo.so'
  echo 'libfoo1:amd64, libfoo1:i386: /usr/lib/libfoo.so'
  exit 1
fi
[ "$5" = libfoo1:amd64 ] && echo 1:2.3-4)sh";

TEST_F(Dpkg, AnyNameOfTheFile) {
  EXPECT_EQ(owner(kAnswers, {"/lib/libfoo.so", "/usr/lib/libfoo.so"}), "libfoo1 1:2.3-4 (dpkg)");
  EXPECT_EQ(owner(kAnswers, {"/lib/libfoo.so"}), "nobody") << "what another package put aside";
}
TEST_F(Dpkg, APatternIsNoName) {
  EXPECT_EQ(owner("echo 'libfoo1: /usr/lib/*'", {"/usr/lib/*", "/usr/lib/[a]", "/usr/lib/a\nb"}), "nobody");
}
TEST_F(Dpkg, StrangeAnswersAreNobody) {
  for (const char* answer : {"", "libfoo1", "libfoo1: ", ": /a", "-x: /a", "$(x): /a", "libfoo1: /b"})
    EXPECT_EQ(owner(fmt::format("echo '{}'", answer), {"/a"}), "nobody") << answer;
  EXPECT_FALSE(DpkgQuery("/nowhere/dpkg-query").owner({"/a"}));
}

// The C library of this machine, by both its names.
TEST(DpkgOfThisMachine, KnowsTheCLibrary) {
  const std::string libc = output_of("dpkg-query -L libc6 2>/dev/null | grep '/libc\\.so\\.6$'");
  if (libc.empty()) GTEST_SKIP() << "no dpkg here";
  const std::string version = output_of("dpkg-query -W -f='${Version}' libc6");
  DpkgQuery dpkg;
  for (const std::string& name : {libc, libc.starts_with("/usr/") ? libc.substr(4) : "/usr" + libc}) {
    const auto found = dpkg.owner(names_of("/", name));
    ASSERT_TRUE(found) << name;
    EXPECT_EQ(found->label(), "libc6 " + version);
  }
}

}  // namespace
}  // namespace kshim::test
