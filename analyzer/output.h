// SPDX-License-Identifier: Apache-2.0
// Where a result goes: a file that is opened before the work, so that a wrong path costs nothing, or a
// standard stream.
#pragma once
#include <string>
#include <string_view>

namespace kshim::cli {

class Output {
 public:
  /// Opens `path`, or stands for `stream` where it is empty. A file keeps its content until write().
  /// UserError with `status` where it cannot be written.
  Output(std::string path, int stream, int status);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  bool is_stream() const noexcept { return path_.empty(); }
  /// Whether it is the file at `path`, by whatever name.
  bool is_same_file(const std::string& path) const;
  /// Replaces the file's content. UserError when the file, or a stdout that is open, does not take it.
  void write(std::string_view text);

 private:
  [[noreturn]] void fail() const;
  std::string path_;
  int fd_;
  int status_;
};

}  // namespace kshim::cli
