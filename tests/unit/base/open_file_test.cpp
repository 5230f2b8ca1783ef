// SPDX-License-Identifier: Apache-2.0
#include "kshim/files/open_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace kshim::files {
namespace {

using std::chrono::milliseconds;

class Pipe : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "kshim-files-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    path_ = folder_ / "pipe";
    ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  static std::string all_of(FileStream& stream) {
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  }
  std::filesystem::path folder_, path_;
};

// shows: a log that is a pipe: a writer that never comes, one that falls silent
TEST_F(Pipe, IsNotWaitedForWithoutEnd) {
  const Patience patience{milliseconds(20), milliseconds(20)};
  EXPECT_FALSE(open_to_read(path_)) << "only where a person names one";
  FileStream alone(open_to_read(path_, Kinds::regular_or_pipe), patience);
  EXPECT_EQ(all_of(alone), "");
  EXPECT_TRUE(alone.has_timed_out());

  OpenFile file = open_to_read(path_, Kinds::regular_or_pipe);
  ASSERT_TRUE(file);
  const int writer = open(path_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(writer, 0);
  constexpr std::string_view kText = "one\ntwo";
  ASSERT_EQ(write(writer, kText.data(), kText.size()), static_cast<ssize_t>(kText.size()));
  FileStream silent(std::move(file), patience);
  EXPECT_EQ(all_of(silent), kText);
  EXPECT_TRUE(silent.has_timed_out());
  close(writer);
}

TEST_F(Pipe, EndsWithItsWriter) {
  OpenFile file = open_to_read(path_, Kinds::regular_or_pipe);
  const int writer = open(path_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_EQ(write(writer, "x", 1), 1);
  close(writer);
  FileStream stream(std::move(file));
  EXPECT_EQ(all_of(stream), "x");
  EXPECT_FALSE(stream.has_timed_out());
}

// shows: a link to a kernel file that loses what a reader reads
TEST_F(Pipe, NoLinkLeadsToFilesOfTheKernels) {
  const std::filesystem::path link = folder_ / "report.jsonl";
  std::filesystem::create_symlink("/proc/uptime", link);
  EXPECT_FALSE(open_to_read(link));
  EXPECT_TRUE(open_to_read("/proc/uptime"));
  std::filesystem::remove(link);
  std::filesystem::create_directory_symlink("/proc", folder_ / "proc");
  EXPECT_FALSE(open_to_read(folder_ / "proc" / "uptime"));
}

}  // namespace
}  // namespace kshim::files
