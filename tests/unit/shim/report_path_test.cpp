// SPDX-License-Identifier: Apache-2.0
#include "report/report_path.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "report/process_record.h"

namespace kshim::shim {
namespace {

namespace fs = std::filesystem;

class ReportPath : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = testing::TempDir() + "kshim-path-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override {
    fs::permissions(folder_, fs::perms::owner_all);
    fs::remove_all(folder_);
  }
  fs::path folder_;
};

const Options kOptions;

TEST(Pattern, PutsNamesIn) {
  const ProcessNames names{"node/1", 17, 3};
  EXPECT_EQ(expand_pattern("kshim-report/%h.%p.jsonl", names).view(), "kshim-report/node_1.17.jsonl");
  EXPECT_EQ(expand_pattern("%r/%%p%p", names).view(), "3/%p17");
}

TEST(Pattern, NumbersComeBeforeTheExtension) {
  EXPECT_EQ(numbered("a/host.17.jsonl", 1).view(), "a/host.17.1.jsonl");
  EXPECT_EQ(numbered("a.b/report", 2).view(), "a.b/report.2");
  EXPECT_EQ(numbered("a/.hidden", 2).view(), "a/.hidden.2");
}

TEST(Pattern, RelativeOnlyBelowTheFolder) {
  EXPECT_EQ(relative_to("/a/b/c.jsonl", "/a/b"), "c.jsonl");
  EXPECT_EQ(relative_to("/a/bc.jsonl", "/a/b"), "/a/bc.jsonl");
  EXPECT_EQ(relative_to("/a", "/"), "/a");
}

TEST(OwnFile, IsClosedAtItsEnd) {
  const int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  { const OwnFile file(fd); }
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
}

TEST(OwnFile, LeavesTheHostsFileThatHasItsNumber) {
  const int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  int channel[2];
  ASSERT_EQ(::pipe2(channel, O_CLOEXEC), 0);
  ASSERT_EQ(::write(channel[1], "host", 4), 4);
  char text[4];
  {
    const OwnFile file(fd);
    ASSERT_EQ(::dup2(channel[0], fd), fd);  // what closefrom and open in another thread come to
    EXPECT_EQ(file.read(0, text, sizeof text), 0U);
  }
  EXPECT_EQ(::read(fd, text, sizeof text), 4);
  for (const int each : {fd, channel[0], channel[1]}) ::close(each);
}

TEST_F(ReportPath, MakesFoldersAndAPrivateFileOutOfTheWay) {
  auto file = std::make_unique<ReportFile>();
  ASSERT_EQ(create_report((folder_ / "x/y/r.jsonl").string(), kOptions, *file), 0);
  struct stat info {};
  ASSERT_EQ(fstat(file->fd, &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0600U);
  EXPECT_GT(file->fd, 100);
  EXPECT_NE(fcntl(file->fd, F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_NE(fcntl(file->fd, F_GETFL) & O_APPEND, 0);
  close(file->fd);
}

TEST_F(ReportPath, NeverTouchesWhatIsThere) {
  const fs::path target = folder_ / "precious";
  std::ofstream(target) << "mine";
  std::ofstream(folder_ / "r.jsonl") << "old";
  fs::create_symlink(target, folder_ / "r.1.jsonl");
  fs::create_symlink(folder_ / "dangling", folder_ / "r.2.jsonl");
  auto file = std::make_unique<ReportFile>();
  ASSERT_EQ(create_report((folder_ / "r.jsonl").string(), kOptions, *file), 0);
  EXPECT_EQ(file->path.view(), (folder_ / "r.3.jsonl").string());
  EXPECT_EQ(fs::file_size(target), 4U);
  EXPECT_FALSE(fs::exists(folder_ / "dangling"));
  close(file->fd);
}

TEST_F(ReportPath, SaysWhyThereIsNone) {
  std::ofstream(folder_ / "file") << "x";
  auto file = std::make_unique<ReportFile>();
  EXPECT_EQ(create_report((folder_ / "file/r.jsonl").string(), kOptions, *file), ENOTDIR);
  EXPECT_EQ(create_report("/proc/nowhere/r.jsonl", kOptions, *file), ENOENT);
  EXPECT_EQ(create_report((folder_ / std::string(300, 'n')).string(), kOptions, *file), ENAMETOOLONG);
  EXPECT_LT(file->fd, 0);
}

TEST_F(ReportPath, GoesToTheTemporaryFolderWhenTheWantedOneIsNotThere) {
  Options options;
  options.report = "kshim-report/%h.%p.jsonl";
  options.start_folder = "/proc/nowhere";
  setenv("TMPDIR", folder_.c_str(), 1);
  auto environment = std::make_unique<EnvironmentCopy>();
  environment->capture();
  auto file = std::make_unique<ReportFile>();
  ASSERT_TRUE(open_report(options, *environment, {"h", 17, 0}, *file));
  const fs::path own = folder_ / ("kshim-report-" + std::to_string(geteuid()));
  EXPECT_EQ(file->path.view(), (own / "h.17.jsonl").string());
  close(file->fd);
  EXPECT_EQ(fs::status(own).permissions(), fs::perms::owner_all);
  // What somebody else may have laid there: a link, or a folder that all may write to.
  fs::remove_all(own);
  fs::create_directory(folder_ / "elsewhere");
  fs::create_directory_symlink(folder_ / "elsewhere", own);
  const std::string beside = own.string() + ".1/h.17";
  EXPECT_TRUE(open_report(options, *environment, {"h", 17, 0}, *file));
  EXPECT_EQ(file->path.view(), beside + ".jsonl");
  close(file->fd);
  fs::remove(own);
  fs::create_directory(own);
  fs::permissions(own, fs::perms::all);
  EXPECT_TRUE(open_report(options, *environment, {"h", 17, 0}, *file));
  EXPECT_EQ(file->path.view(), beside + ".1.jsonl");
  close(file->fd);
  EXPECT_TRUE(fs::is_empty(own));
  EXPECT_TRUE(fs::is_empty(folder_ / "elsewhere"));
  unsetenv("TMPDIR");
}

TEST(ProcessFacts, TimeIsRfc3339) {
  EXPECT_EQ(rfc3339(0, 0).view(), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(rfc3339(951782399, 999'999'999).view(), "2000-02-28T23:59:59.999999Z");
  EXPECT_EQ(rfc3339(951782400, 0).view(), "2000-02-29T00:00:00.000000Z");
  EXPECT_EQ(rfc3339(1795250721, 5'678'901).view(), "2026-11-21T08:45:21.005678Z");
  EXPECT_EQ(rfc3339(4107542400, 0).view(), "2100-03-01T00:00:00.000000Z");
}

TEST(ProcessFacts, StartTimeWhateverTheNameIs) {
  const std::string fields = " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21\n";
  EXPECT_EQ(start_of("17 (a)" + fields), 4711U);
  EXPECT_EQ(start_of("17 (a) b (c) 5" + std::string(")") + fields), 4711U);
  EXPECT_EQ(start_of("17 (a) S 1"), 0U);
  EXPECT_EQ(start_of(""), 0U);
}

TEST(ProcessFacts, RankIsTheFirstThatIsANumber) {
  auto environment = std::make_unique<EnvironmentCopy>();
  unsetenv("RANK");
  setenv("SLURM_PROCID", "x", 1);
  setenv("PMI_RANK", "5", 1);
  environment->capture();
  EXPECT_EQ(rank_of(*environment), 5U);
  setenv("RANK", "2", 1);
  environment->capture();
  EXPECT_EQ(rank_of(*environment), 2U);
  for (const char* name : {"RANK", "SLURM_PROCID", "PMI_RANK"}) unsetenv(name);
}

/// Reports as if `folder_` were the working directory; where the report is, relative to it.
class DefaultFolder : public ReportPath {
 protected:
  void SetUp() override {
    ReportPath::SetUp();
    working_ = folder_ / "working";
    fs::create_directory(working_);
    temporary_ = folder_ / "tmp";
    fs::create_directory(temporary_);
    setenv("TMPDIR", temporary_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("TMPDIR");
    ReportPath::TearDown();
  }
  std::string opened() {
    Options options;
    options.report = "kshim-report/%h.%p.jsonl";
    const std::string working = working_.string();
    options.start_folder = working;
    auto environment = std::make_unique<EnvironmentCopy>();
    environment->capture();
    auto file = std::make_unique<ReportFile>();
    if (!open_report(options, *environment, {"h", 17, 0}, *file)) return "";
    close(file->fd);
    return fs::relative(std::string(file->path.view()), folder_).string();
  }
  void give(const fs::path& path, unsigned owner, unsigned mode) {
    ASSERT_EQ(chown(path.c_str(), owner, owner), 0);
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
  }
  const std::string own_ = "kshim-report-" + std::to_string(geteuid());
  fs::path working_, temporary_;
};

TEST_F(DefaultFolder, IsHereWhereNobodyElseCanWrite) {
  EXPECT_EQ(opened(), "working/kshim-report/h.17.jsonl");
  EXPECT_EQ(opened(), "working/kshim-report/h.17.1.jsonl");
}
TEST_F(DefaultFolder, IsElsewhereWhereOthersCanWrite) {
  ASSERT_EQ(chmod(working_.c_str(), 0777), 0);
  EXPECT_EQ(opened(), "tmp/" + own_ + "/h.17.jsonl");
  EXPECT_TRUE(fs::is_empty(working_));
}
TEST_F(DefaultFolder, IsNotAFolderThatOthersCanWriteTo) {
  fs::create_directory(working_ / "kshim-report");
  ASSERT_EQ(chmod((working_ / "kshim-report").c_str(), 0777), 0);
  EXPECT_EQ(opened(), "tmp/" + own_ + "/h.17.jsonl");
}
// shows: reports: a folder kshim-report of another user in a sticky folder
TEST_F(DefaultFolder, OfRootAndOfUsersDoNotMeet) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  give(working_, 4711, 0755);
  EXPECT_EQ(opened(), "tmp/" + own_ + "/h.17.jsonl");
  EXPECT_TRUE(fs::is_empty(working_)) << "root leaves nothing in a user's folder";
  fs::remove_all(temporary_ / own_);
  give(working_, 4711, 0777);
  EXPECT_EQ(opened(), "tmp/" + own_ + "/h.17.jsonl");
  fs::remove_all(temporary_ / own_);
  // Somebody laid it in a folder of his, or of nobody's: /scratch, 1777.
  give(working_, 0, 01777);
  fs::create_directory(working_ / "kshim-report");
  give(working_ / "kshim-report", 4711, 0777);
  EXPECT_EQ(opened(), "working/" + own_ + "/h.17.jsonl");
  EXPECT_EQ(fs::status(working_ / own_).permissions(), fs::perms::owner_all);
  give(working_ / own_, 4711, 0777);
  EXPECT_EQ(opened(), "working/" + own_ + ".1/h.17.jsonl") << "and neither is a folder of the right name";
}
// shows: reports: folders of all names that can be known, made by another user
TEST_F(DefaultFolder, IsFoundWhateverNamesAreTaken) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  give(working_, 0, 01777);
  const auto take = [&](const std::string& name) {
    fs::create_directory(working_ / name);
    give(working_ / name, 4711, 0777);
  };
  take(own_);
  EXPECT_EQ(opened(), "working/" + own_ + ".1/h.17.jsonl");
  fs::remove_all(working_ / (own_ + ".1"));
  fs::create_directory_symlink(folder_ / "secret", working_ / (own_ + ".1"));
  ASSERT_EQ(lchown((working_ / (own_ + ".1")).c_str(), 4711, 4711), 0);
  EXPECT_EQ(opened(), "working/" + own_ + ".2/h.17.jsonl");
  fs::remove_all(working_ / (own_ + ".2"));
  for (int number = 2; number < 10; ++number) take(own_ + "." + std::to_string(number));
  const std::string path = opened();
  EXPECT_TRUE(path.starts_with("working/" + own_ + ".")) << path;
  EXPECT_TRUE(path.ends_with("/h.17.jsonl")) << path;
}
// shows: reports: a link of another user named kshim-report
TEST_F(DefaultFolder, IsNotReachedThroughALinkOfAnother) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  fs::create_directory(folder_ / "secret");
  fs::create_directory_symlink(folder_ / "secret", working_ / "kshim-report");
  ASSERT_EQ(lchown((working_ / "kshim-report").c_str(), 4711, 4711), 0);
  EXPECT_EQ(opened(), "tmp/" + own_ + "/h.17.jsonl");
  EXPECT_TRUE(fs::is_empty(folder_ / "secret"));
  auto file = std::make_unique<ReportFile>();
  EXPECT_EQ(create_report((working_ / "kshim-report/r.jsonl").string(), kOptions, *file), ELOOP);
  ASSERT_EQ(lchown((working_ / "kshim-report").c_str(), 0, 0), 0);
  EXPECT_EQ(create_report((working_ / "kshim-report/r.jsonl").string(), kOptions, *file), 0) << "one's own";
  close(file->fd);
}
TEST_F(ReportPath, HasTheModeThatIsAskedFor) {
  Options options;
  options.mode = 0640;
  const mode_t before = umask(077);
  auto file = std::make_unique<ReportFile>();
  EXPECT_EQ(create_report((folder_ / "r.jsonl").string(), options, *file), 0);
  umask(before);
  struct stat info {};
  ASSERT_EQ(fstat(file->fd, &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0640U);
  close(file->fd);
}
// shows: reports: files without end
TEST_F(ReportPath, AFolderTakesSoManyFilesAndNoMore) {
  Options options;
  options.max_files = 300;
  auto file = std::make_unique<ReportFile>();
  for (unsigned i = 0; i < options.max_files; ++i) {
    ASSERT_EQ(create_report((folder_ / "r.jsonl").string(), options, *file), 0) << i;
    close(file->fd);
  }
  EXPECT_EQ(create_report((folder_ / "r.jsonl").string(), options, *file), -1);
}

TEST_F(ReportPath, TheCapHoldsWhereProcessesStartAtTheSameTime) {
  Options options;
  options.max_files = 3;
  constexpr unsigned kRounds = 200;
  for (unsigned round = 0; round < kRounds; ++round) fs::create_directory(folder_ / std::to_string(round));
  std::atomic<unsigned> arrived{0};
  const auto starter = [&](unsigned number) {
    auto file = std::make_unique<ReportFile>();
    for (unsigned round = 0; round < kRounds; ++round) {
      const std::string path = (folder_ / std::to_string(round) / std::to_string(number)).string();
      arrived.fetch_add(1);
      while (arrived.load() < 2 * (round + 1)) continue;
      for (unsigned i = 0; i < 3; ++i)
        if (create_report(path, options, *file) == 0) close(file->fd);
    }
  };
  std::thread other(starter, 1);
  starter(2);
  other.join();
  unsigned over = 0;
  for (unsigned round = 0; round < kRounds; ++round)
    over += std::distance(fs::directory_iterator(folder_ / std::to_string(round)), {}) > 3 ? 1U : 0U;
  EXPECT_EQ(over, 0U);
}
// shows: reports: a spool of all users that one user fills
TEST_F(ReportPath, InASpoolOfAllUsersTheCallersFilesCount) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to give files to another user";
  Options options;
  options.max_files = 300;
  ASSERT_EQ(chmod(folder_.c_str(), 01777), 0);
  for (unsigned i = 0; i < 400; ++i) {
    const std::string name = (folder_ / ("theirs" + std::to_string(i))).string();
    close(open(name.c_str(), O_CREAT | O_WRONLY, 0600));
    ASSERT_EQ(chown(name.c_str(), 4711, 4711), 0);
  }
  ReportFile file;
  for (unsigned i = 0; i < options.max_files; ++i) {
    ASSERT_EQ(create_report((folder_ / "r.jsonl").string(), options, file), 0) << i;
    close(file.fd);
  }
  EXPECT_EQ(create_report((folder_ / "r.jsonl").string(), options, file), -1);
  // Nobody else's folder: whatever lies in it counts.
  ASSERT_EQ(chmod(folder_.c_str(), 0700), 0);
  options.max_files = 600;
  EXPECT_EQ(create_report((folder_ / "r.jsonl").string(), options, file), -1);
}

TEST(ProcessFacts, EnvironmentHasListedNamesOnly) {
  setenv("CUDA_VISIBLE_DEVICES", "0,1", 1);
  setenv("CUDA_VISIBLE_DEVICES_SECRET", "x", 1);
  setenv("AWS_SECRET_ACCESS_KEY", "x", 1);
  auto environment = std::make_unique<EnvironmentCopy>();
  environment->capture();
  EXPECT_EQ(environment->find("CUDA_VISIBLE_DEVICES"), "0,1");
  for (const report::EnvRow& row : environment->rows())
    EXPECT_EQ(row.name.find("SECRET"), std::string_view::npos);
}

}  // namespace
}  // namespace kshim::shim
