// SPDX-License-Identifier: Apache-2.0
// Where a result goes: a standard stream, or a file that is tried before the work, so that a wrong path costs
// nothing, and that appears at the end, whole: until then a file of that name keeps what it has, and whatever
// ends the work leaves no half or empty one. The file that GitHub's runner calls GITHUB_STEP_SUMMARY is added
// to: what a step's other commands have written there stays.
#pragma once
#include <string>
#include <string_view>

namespace kshim::cli {

class Output {
 public:
  /// Tries `path`, or stands for `stream` where it is empty. UserError with `status` where it cannot be
  /// written, or is a link to a file: who planted it in a shared folder would choose what is overwritten.
  Output(std::string path, int stream, int status);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  bool is_stream() const noexcept { return path_.empty(); }
  /// Whether it is the file at `path`, by whatever name.
  bool is_same_file(const std::string& path) const;
  /// The first bytes, `most` at most, of a file that was there before; empty where there was none.
  std::string first_bytes(std::size_t most) const;
  /// Replaces the file, or its content. UserError when the file, or a stdout that is open, does not take it.
  void write(std::string_view text);

 private:
  [[noreturn]] void fail() const;
  void find();
  bool replace(std::string_view text) const;
  void write_to(int fd, std::string_view text) const;
  std::string path_;
  std::string folder_;  ///< where a new file is made and then named `path_`; empty: written in place
  unsigned mode_ = 0666;
  bool append_ = false;
  int fd_;  ///< -1 where there is no such file yet
  int status_;
};

}  // namespace kshim::cli
