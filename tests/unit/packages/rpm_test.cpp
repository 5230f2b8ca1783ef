// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <sqlite3.h>

#include "analyzer/owner/databases.h"
#include "output_of.h"
#include "rpm_fixture.h"
#include "tests/unit/analyzer/report_text.h"

namespace kshim::packages {
namespace {

using test::RpmBlob;
using ::testing::HasSubstr;

constexpr const char* kTables =
    "CREATE TABLE Packages (hnum INTEGER PRIMARY KEY AUTOINCREMENT, blob BLOB NOT NULL);"
    "CREATE TABLE Basenames (key TEXT NOT NULL, hnum INTEGER NOT NULL, idx INTEGER NOT NULL);";

class Rpm : public ::testing::Test {
 protected:
  static constexpr const char* kFile = "var/lib/rpm/rpmdb.sqlite";
  void sql(const std::string& text, const std::string& blob = "") {
    std::filesystem::create_directories((root_.path() / kFile).parent_path());
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open((root_.path() / kFile).c_str(), &database), SQLITE_OK);
    if (blob.empty()) {
      EXPECT_EQ(sqlite3_exec(database, text.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
          << sqlite3_errmsg(database);
    } else {
      sqlite3_stmt* statement = nullptr;
      EXPECT_EQ(sqlite3_prepare_v2(database, text.c_str(), -1, &statement, nullptr), SQLITE_OK);
      sqlite3_bind_blob(statement, 1, blob.data(), static_cast<int>(blob.size()), SQLITE_TRANSIENT);
      EXPECT_EQ(sqlite3_step(statement), SQLITE_DONE);
      sqlite3_finalize(statement);
    }
    sqlite3_close(database);
  }
  void package(int number, const std::string& blob) {
    sql("INSERT INTO Packages VALUES (" + std::to_string(number) + ", ?)", blob);
  }
  void file(const std::string& name, const std::string& number, const std::string& index) {
    sql("INSERT INTO Basenames VALUES ('" + name + "', " + number + ", " + index + ")");
  }
  std::string owner(const std::string& path) {
    RpmDatabase database(root_.path(), budget_);
    const auto found = database.owner({path});
    return found ? found->label() : "nobody";
  }
  std::string unreadable() { return RpmDatabase(root_.path(), budget_).unreadable(); }
  test::TemporaryFolder root_;
  Budget budget_;
};

TEST_F(Rpm, AFileBelongsToTheHeaderThatHasIt) {
  sql(kTables);
  package(1, RpmBlob()
                 .text(1000, "other")
                 .text(1001, "1")
                 .numbers(1116, {0})
                 .texts(1117, {"libfoo.so.1"})
                 .texts(1118, {"/srv/"})
                 .blob());
  package(2, RpmBlob::libfoo().blob());
  for (const char* row : {"1", "2"}) file("libfoo.so.1", row, "0");
  file("libfoo.so.1", "2", "1");
  EXPECT_EQ(owner("/usr/lib64/libfoo.so.1"), "libfoo 1.4-7.el9");
  EXPECT_EQ(owner("/opt/foo/libfoo.so.1"), "libfoo 1.4-7.el9");
  EXPECT_EQ(owner("/srv/libfoo.so.1"), "other 1");
  EXPECT_EQ(owner("/usr/libfoo.so.1"), "nobody");
  EXPECT_EQ(unreadable(), "");
}
TEST_F(Rpm, FedorasPlaceComesFirst) {
  root_.write("usr/lib/sysimage/rpm/rpmdb.sqlite", "");
  sql(kTables);
  package(1, RpmBlob::libfoo().blob());
  file("libfoo.so.1", "1", "0");
  EXPECT_EQ(owner("/usr/lib64/libfoo.so.1"),
            "libfoo 1.4-7.el9");  // an empty file is no database: the next is asked
}
TEST_F(Rpm, AnIndexThatLiesIsNotBelieved) {
  sql(kTables);
  package(1, RpmBlob::libfoo().blob());
  for (const char* index : {"-1", "7", "9223372036854775807", "'x'"}) file("libfoo.so.1", "1", index);
  file("libfoo.so.1", "99", "0");
  file("evil.so", "1", "0");
  EXPECT_EQ(owner("/usr/lib64/evil.so"), "nobody");
  EXPECT_EQ(owner("/opt/foo/libfoo.so.1"), "nobody");
}
TEST_F(Rpm, ADamagedHeaderOwnsNothing) {
  sql(kTables);
  package(1, RpmBlob::libfoo().blob().substr(0, 40));
  package(2, "x");
  for (const char* row : {"1", "2"}) file("libfoo.so.1", row, "0");
  EXPECT_EQ(owner("/usr/lib64/libfoo.so.1"), "nobody");
}
TEST_F(Rpm, AHeaderThatIsNoBlobOwnsNothing) {
  sql(kTables);
  sql("INSERT INTO Packages VALUES (1, 'text')");
  file("libfoo.so.1", "1", "0");
  EXPECT_EQ(owner("/usr/lib64/libfoo.so.1"), "nobody");
}
TEST_F(Rpm, OtherTablesAreNotRead) {
  sql("CREATE TABLE Something (x)");
  EXPECT_EQ(owner("/usr/lib64/libfoo.so.1"), "nobody");
  EXPECT_EQ(unreadable(), "cannot be read as SQLite");
}
TEST_F(Rpm, AViewInATablesPlaceIsNotRead) {
  // Never ends: SQLite is stopped, or refuses the view to begin with.
  sql("CREATE TABLE Packages (hnum INTEGER PRIMARY KEY, blob BLOB NOT NULL);"
      "CREATE VIEW Basenames AS WITH RECURSIVE n(key, hnum, idx) AS (SELECT 'x', 1, 0 UNION ALL SELECT key, "
      "hnum + 1, idx FROM n)"
      " SELECT * FROM n WHERE hnum < 0");
  EXPECT_EQ(owner("/usr/lib64/x"), "nobody");
}
TEST_F(Rpm, WhatIsNoSqliteIsSaidToBeUnreadable) {
  root_.write(kFile, std::string(5000, 'x'));
  EXPECT_EQ(owner("/usr/lib64/libfoo.so.1"), "nobody");
  EXPECT_EQ(unreadable(), "cannot be read as SQLite");
}
TEST_F(Rpm, EveryDamagedPageIsSurvived) {
  sql(kTables);
  package(1, RpmBlob::libfoo().blob());
  file("libfoo.so.1", "1", "0");
  std::string bytes(std::filesystem::file_size(root_.path() / kFile), '\0');
  std::ifstream(root_.path() / kFile, std::ios::binary)
      .read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  for (std::size_t at = 0; at < bytes.size(); at += 61) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
    root_.write(kFile, damaged);
    const std::string got = owner("/usr/lib64/libfoo.so.1");
    EXPECT_TRUE(got == "nobody" || got.starts_with("libfoo") || got.find("1.4") != std::string::npos ||
                got.find("7.el9") != std::string::npos)
        << at << " " << got;
  }
}
TEST_F(Rpm, OlderKindsAreNamed) {
  root_.write("var/lib/rpm/Packages", "x");
  EXPECT_THAT(unreadable(), HasSubstr("Berkeley DB"));
  root_.write("usr/lib/sysimage/rpm/Packages.db", "x");
  std::filesystem::remove(root_.path() / "var/lib/rpm/Packages");
  EXPECT_THAT(unreadable(), HasSubstr("ndb"));
}
TEST_F(Rpm, WithoutADatabaseThereIsNothingToSay) {
  EXPECT_EQ(owner("/usr/lib64/libfoo.so.1"), "nobody");
  EXPECT_EQ(unreadable(), "");
}

bool runs(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }

// A database that rpm itself made, and what rpm itself says of it.
TEST_F(Rpm, OfRpmItselfSaysWhatRpmSays) {
  if (!runs("command -v rpmbuild") || !runs("command -v rpm")) GTEST_SKIP() << "no rpm and rpmbuild here";
  const std::string root = root_.path().string();
  root_.write("libfoo.spec", R"(Name: libfoo
Epoch: 2
Version: 1.4
Release: 7.el9
Summary: for a test of kshim
License: none
BuildArch: noarch
%description
.
%install
mkdir -p %{buildroot}/usr/lib64/foo %{buildroot}/opt/foo
echo a >%{buildroot}/usr/lib64/foo/libfoo.so.1.4
echo b >%{buildroot}/usr/lib64/libfoo.so.1
echo c >%{buildroot}/opt/foo/libfoo.so.1
%files
/usr/lib64/foo/libfoo.so.1.4
/usr/lib64/libfoo.so.1
/opt/foo/libfoo.so.1
)");
  const std::string dbpath = root + "/var/lib/rpm";
  ASSERT_TRUE(runs("rpmbuild --define '_topdir " + root + "/top' -bb " + root + "/libfoo.spec"));
  std::filesystem::create_directories(dbpath);
  ASSERT_TRUE(runs("rpm --dbpath " + dbpath + " --define '_db_backend sqlite' --initdb"));
  ASSERT_TRUE(runs("rpm --dbpath " + dbpath + " -i --justdb --nodeps --noscripts " + root +
                   "/top/RPMS/noarch/*.rpm"));
  if (!std::filesystem::exists(dbpath + "/rpmdb.sqlite")) GTEST_SKIP() << "this rpm keeps no SQLite database";
  for (const char* path :
       {"/usr/lib64/foo/libfoo.so.1.4", "/usr/lib64/libfoo.so.1", "/opt/foo/libfoo.so.1"}) {
    const std::string said = output_of("rpm --dbpath " + dbpath +
                                       " -q --qf '%{NAME} %{EPOCH}:%{VERSION}-%{RELEASE}' --path " + path);
    EXPECT_EQ(owner(path), said);
    EXPECT_EQ(said, "libfoo 2:1.4-7.el9");
  }
  EXPECT_EQ(owner("/opt/libfoo.so.1"), "nobody");
  EXPECT_FALSE(runs("rpm --dbpath " + dbpath + " -q --path /opt/libfoo.so.1"));
}

}  // namespace
}  // namespace kshim::packages
