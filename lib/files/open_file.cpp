// SPDX-License-Identifier: Apache-2.0
#include "kshim/files/open_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <mutex>
#include <system_error>

namespace kshim::files {
namespace {

namespace fs = std::filesystem;

constexpr int kRead = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

std::string clause_of(int error) {
  if (error == ENOENT) return "is no longer there";
  return "cannot be opened (" + std::generic_category().message(error) + ")";
}

bool is_same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/// Opens the file of `entry` (O_PATH) for reading. Without /proc, opens the name and compares the files.
int open_again(const Descriptor& entry, const struct stat& status, const fs::path& path) {
  const std::string by_descriptor = "/proc/self/fd/" + std::to_string(entry.get());
  const int fd = ::open(by_descriptor.c_str(), kRead);
  if (fd >= 0 || errno != ENOENT) return fd;
  const int by_name = ::open(path.c_str(), kRead);
  struct stat now {};
  if (by_name < 0 || (::fstat(by_name, &now) == 0 && is_same(now, status))) return by_name;
  ::close(by_name);
  errno = ESTALE;
  return -1;
}

/// Whether a link leads to a file of the kernel's: reading some takes what is read away (/proc/kmsg,
/// trace_pipe), and what lies among others was laid there by anybody.
bool leads_to_kernels(const Descriptor& entry, const struct stat& status, const fs::path& path) {
  constexpr std::string_view kOwn[] = {"/proc/", "/sys/"};
  constexpr std::uint32_t kTypes[] = {PROC_SUPER_MAGIC, SYSFS_MAGIC,      DEBUGFS_MAGIC,
                                      TRACEFS_MAGIC,    SECURITYFS_MAGIC, BPF_FS_MAGIC};
  if (status.st_blocks != 0) return false;
  for (const std::string_view own : kOwn)
    if (path.native().starts_with(own)) return false;
  struct statfs system {};
  if (::fstatfs(entry.get(), &system) != 0 ||
      std::find(std::begin(kTypes), std::end(kTypes), static_cast<std::uint32_t>(system.f_type)) ==
          std::end(kTypes))
    return false;
  std::error_code error;
  return fs::read_symlink("/proc/self/fd/" + std::to_string(entry.get()), error) != path.lexically_normal();
}

/// What was opened last by any thread; nullopt: a pipe.
std::mutex g_last_mutex;
std::optional<std::string> g_last = std::string();

void remember(std::optional<std::string> path) {
  const std::lock_guard lock(g_last_mutex);
  g_last = std::move(path);
}

}  // namespace

std::optional<std::string> last_opened() {
  const std::lock_guard lock(g_last_mutex);
  return g_last;
}

void await_writer() { remember({}); }

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

OpenFile open_to_read(const fs::path& path, int folder, const char* name) {
  OpenFile out;
  remember(path.native());
  struct stat before {};
  if (::fstatat(folder, name, &before, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(before.st_mode) ||
      before.st_blocks == 0)  // nor is it the kernel's
    return out;
  Descriptor file(::openat(folder, name, kRead | O_NOFOLLOW));
  if (file && ::fstat(file.get(), &out.status) == 0 && is_same(out.status, before)) out.fd = std::move(file);
  return out;
}

OpenFile open_to_read(const fs::path& path, Kinds kinds) {
  OpenFile out;
  remember(path.native());
  const Descriptor entry(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!entry || ::fstat(entry.get(), &out.status) != 0) {
    out.error = errno;
    out.why = clause_of(out.error);
    return out;
  }
  const bool pipe = S_ISFIFO(out.status.st_mode) && kinds == Kinds::regular_or_pipe;
  if (pipe) await_writer();
  if (!S_ISREG(out.status.st_mode) && !pipe) {
    out.error = S_ISDIR(out.status.st_mode) ? EISDIR : EINVAL;
    out.why = S_ISDIR(out.status.st_mode) ? "is a folder" : "is not a regular file";
    return out;
  }
  if (leads_to_kernels(entry, out.status, path)) {
    out.error = EINVAL;
    out.why = "is a link to a file of the kernel's";
    return out;
  }
  out.fd = Descriptor(open_again(entry, out.status, path));
  if (!out.fd) {
    out.error = errno;
    out.why = clause_of(out.error);
  }
  return out;
}

std::optional<std::size_t> read_at(int fd, std::uint64_t offset, std::span<char> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t got = ::pread(fd, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

namespace {

std::optional<std::string> read_open(const OpenFile& file, std::size_t most) {
  constexpr std::size_t kPiece = std::size_t{64} << 10U;
  std::string out;
  while (out.size() < most) {
    const std::size_t before = out.size();
    // The file's size is only a hint: files in /proc have size 0, others may be growing.
    const auto told = static_cast<std::size_t>(std::max<off_t>(file.status.st_size, 0));
    const std::size_t piece = std::max(kPiece, told > before ? told - before : 0);
    out.resize(before + std::min(most - before, piece));
    const std::optional<std::size_t> got =
        read_at(file.fd.get(), before, {out.data() + before, out.size() - before});
    // A file in /proc fails with ESRCH after its process has ended: the bytes read before count.
    const std::size_t more = got.value_or(0);
    const bool end = before + more < out.size();
    out.resize(before + more);
    if (!got && out.empty()) return std::nullopt;
    if (end) break;
  }
  return out;
}

}  // namespace

std::optional<std::string> read_up_to(const fs::path& path, std::size_t most) {
  const OpenFile file = open_to_read(path);
  return file ? read_open(file, most) : std::nullopt;
}

std::optional<std::string> read_whole(const fs::path& path, std::size_t most) {
  return read_whole(open_to_read(path), most);
}

std::optional<std::string> read_whole(const OpenFile& file, std::size_t most) {
  if (!file || static_cast<std::uint64_t>(std::max<off_t>(file.status.st_size, 0)) > most)
    return std::nullopt;
  std::optional<std::string> out = read_open(file, most == std::string::npos ? most : most + 1);
  if (out && out->size() > most) return std::nullopt;
  return out;
}

std::vector<DataRange> data_ranges(int fd, const struct stat& status) {
  constexpr std::size_t kMaxRanges = 65'536;
  constexpr std::uint64_t kBlock = 512;
  const auto size = static_cast<std::uint64_t>(std::max<off_t>(status.st_size, 0));
  std::vector<DataRange> out;
  if (size == 0) return out;
  out.push_back({0, size});
  // Nearly all files are not sparse. This check needs no system call.
  if (static_cast<std::uint64_t>(status.st_blocks) * kBlock >= size) return out;
  out.clear();
  for (std::uint64_t at = 0; at < size && out.size() < kMaxRanges;) {
    const off_t data = ::lseek(fd, static_cast<off_t>(at), SEEK_DATA);
    if (data < 0) {
      if (errno != ENXIO) out.push_back({at, size});  // ENXIO: only a hole is left
      break;
    }
    const off_t hole = ::lseek(fd, data, SEEK_HOLE);
    at = hole < 0 ? size : std::min(static_cast<std::uint64_t>(hole), size);
    out.push_back({static_cast<std::uint64_t>(data), at});
  }
  if (out.size() == kMaxRanges) out.back().end = size;
  return out;
}

class FileStream::Buffer : public std::streambuf {
 public:
  Buffer(OpenFile file, Patience patience)
      : file_(std::move(file)), pipe_(S_ISFIFO(file_.status.st_mode)), patience_(patience) {}
  bool has_timed_out() const noexcept { return timed_out_; }

 protected:
  int_type underflow() override {
    for (;;) {
      if (pipe_ && !wait()) return traits_type::eof();
      if (!pipe_ && only_hole_left()) return traits_type::eof();
      const ssize_t got = ::read(file_.fd.get(), text_.data(), text_.size());
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (got <= 0) return traits_type::eof();
      begun_ = true;
      setg(text_.data(), text_.data(), text_.data() + got);
      return traits_type::to_int_type(text_[0]);
    }
  }

 private:
  /// Moves to the next range with data. Makes no system call for a file that is not sparse.
  bool only_hole_left() const {
    constexpr off_t kBlock = 512;
    if (file_.status.st_blocks * kBlock >= file_.status.st_size) return false;
    const int fd = file_.fd.get();
    return ::lseek(fd, ::lseek(fd, 0, SEEK_CUR), SEEK_DATA) < 0 && errno == ENXIO;
  }
  /// False if there is no writer, or the writer is silent for too long.
  bool wait() {
    pollfd what{.fd = file_.fd.get(), .events = POLLIN, .revents = 0};
    const auto patience = begun_ ? patience_.next : patience_.first;
    int got = 0;
    do got = ::poll(&what, 1, static_cast<int>(patience.count()));
    while (got < 0 && errno == EINTR);
    timed_out_ = timed_out_ || got == 0;
    return got > 0;
  }
  OpenFile file_;
  bool pipe_;
  Patience patience_;
  bool timed_out_ = false;
  bool begun_ = false;
  std::array<char, 65'536> text_{};
};

FileStream::FileStream(OpenFile file, Patience patience)
    : std::istream(nullptr), buffer_(std::make_unique<Buffer>(std::move(file), patience)) {
  rdbuf(buffer_.get());
}
FileStream::~FileStream() { rdbuf(nullptr); }
bool FileStream::has_timed_out() const noexcept { return buffer_->has_timed_out(); }

}  // namespace kshim::files
