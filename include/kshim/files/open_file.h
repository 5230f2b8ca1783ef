// SPDX-License-Identifier: Apache-2.0
// The only function by which the command opens files for reading. The file's type is checked before it is
// opened (O_PATH), because opening a device may have effects, and opening a FIFO may block. It opens regular
// files, and pipes that the user named. tests/lint/opens.py finds other ways of opening files.
#pragma once
#include <sys/stat.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <istream>
#include <memory>
#include <optional>
#include <span>
#include <streambuf>
#include <string>
#include <utility>
#include <vector>

#include "kshim/base/bytes.h"

namespace kshim::files {

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor();
  int get() const noexcept { return fd_; }
  int release() noexcept { return std::exchange(fd_, -1); }
  explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  int fd_;
};

enum class Kinds : std::uint8_t { regular, regular_or_pipe };

struct OpenFile {
  Descriptor fd;
  struct stat status {};
  int error = 0;    ///< errno if fd is not open
  std::string why;  ///< a clause: "is no longer there", "is not a regular file"
  explicit operator bool() const noexcept { return static_cast<bool>(fd); }
};
OpenFile open_to_read(const std::filesystem::path& path, Kinds kinds = Kinds::regular);
/// The same for a regular file that lies in an opened folder itself, in half the time; no link is followed.
/// Not open, without a reason, where it is not that simple.
OpenFile open_to_read(const std::filesystem::path& path, int folder, const char* name);
/// The file that was opened last; empty: none was. nullopt: a pipe is read, whose writer may take its time.
std::optional<std::string> last_opened();
/// From now on a pipe is read, until the next file is opened.
void await_writer();

/// Reads up to `out.size()` bytes from `offset`: the number read, fewer at the file's end; nullopt on error.
std::optional<std::size_t> read_at(int fd, std::uint64_t offset, std::span<char> out);
/// The file's contents, at most `most` bytes; nullopt if it cannot be opened or read. Also for files in
/// /proc, which have no size.
std::optional<std::string> read_up_to(const std::filesystem::path& path, std::size_t most);
/// The same, but nullopt if the file is longer than `most`.
std::optional<std::string> read_whole(const std::filesystem::path& path, std::size_t most);
std::optional<std::string> read_whole(const OpenFile& file, std::size_t most);

/// The ranges of a file that hold data, without the holes of a sparse file. At most 65,536 ranges; the last
/// one extends to the end of the file. One range if the file system does not support the query.
struct DataRange {
  std::uint64_t begin = 0, end = 0;
};
std::vector<DataRange> data_ranges(int fd, const struct stat& status);

/// How long a pipe may be silent: before its first byte, and later.
struct Patience {
  std::chrono::milliseconds first{10'000};
  std::chrono::milliseconds next{60'000};
};

/// A file as a stream, for readers that take one. A pipe ends where its writer keeps it waiting for longer.
class FileStream : public std::istream {
 public:
  explicit FileStream(OpenFile file, Patience patience = {});
  bool has_timed_out() const noexcept;
  ~FileStream() override;
  FileStream(const FileStream&) = delete;
  FileStream& operator=(const FileStream&) = delete;

 private:
  class Buffer;
  std::unique_ptr<Buffer> buffer_;
};

}  // namespace kshim::files
