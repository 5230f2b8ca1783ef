// SPDX-License-Identifier: Apache-2.0
#include "report/stderr_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "guest/signals.h"
#include "guest/syscalls.h"
#include "guest/text_buffer.h"
#include "kshim/report/redact.h"

namespace kshim::shim {
namespace {

constexpr std::size_t kPipeBuffer =
    4096;  // PIPE_BUF: a write of no more is not torn, and fits where poll() says so

// The file that descriptor 2 referred to at the start. Written by the constructor, before the host has
// threads.
enum class Start : std::uint8_t { unknown, closed, open };
std::atomic<Start> g_start{Start::unknown};
dev_t g_device = 0;
ino_t g_inode = 0;
std::atomic<bool> g_silent{false};

bool is_stdout(const struct stat& file) noexcept {
  struct stat out {};
  return raw::status_of(STDOUT_FILENO, out) == 0 && out.st_dev == file.st_dev && out.st_ino == file.st_ino;
}

/// Whether another descriptor refers to the same open file description, as dup2 makes it. (A file that was
/// opened twice has two.) Where a sandbox refuses to compare, stdout has to be the same file.
bool is_open_elsewhere(const struct stat& file) noexcept {
  constexpr int kFile = 0;      // KCMP_FILE of linux/kcmp.h
  constexpr int kLooked = 256;  // redirections have low numbers, and each look is a system call
  const auto process = static_cast<long>(raw::thread());
  for (long fd = 0; fd < kLooked; ++fd) {
    if (fd == STDERR_FILENO) continue;
    const long order = raw::call(SYS_kcmp, process, process, kFile, static_cast<long>(STDERR_FILENO), fd);
    if (order == 0) return true;
    if (order < 0 && raw::t_error != EBADF) return is_stdout(file);
  }
  return false;
}

/// Pseudo-terminals have the major numbers 136 to 143 (Linux' admin-guide/devices.txt).
bool is_terminal(const struct stat& file) noexcept {
  const unsigned number = major(file.st_rdev);
  return S_ISCHR(file.st_mode) && number >= 136 && number <= 143;
}

/// A service that inetd starts has its connection as stdin, stdout and stderr.
bool is_connection(const struct stat& file) noexcept {
  struct stat in {};
  return S_ISSOCK(file.st_mode) && raw::status_of(STDIN_FILENO, in) == 0 && in.st_dev == file.st_dev &&
         in.st_ino == file.st_ino;
}

/// After a host has closed stderr, its next file or pipe may get descriptor 2. The shim must not write into
/// that. After a redirection by dup2 (daemons, test runners), another descriptor usually refers to the same
/// open file description, for instance stdout, or descriptor 2 is a terminal. Any other redirection (freopen,
/// or dup2 and close) cannot be told from a file of the host, and gets nothing.
bool is_stderr() noexcept {
  const Start start = g_start.load(std::memory_order_acquire);
  if (start == Start::closed) return false;
  struct stat now {};
  if (raw::status_of(STDERR_FILENO, now) != 0 || is_connection(now)) return false;
  if (start == Start::unknown || (now.st_dev == g_device && now.st_ino == g_inode)) return true;
  return is_terminal(now) || is_open_elsewhere(now);
}

/// Whether it takes text now; a pipe has a reader.
bool is_ready() noexcept {
  pollfd descriptor{STDERR_FILENO, POLLOUT, 0};
  const int found = raw::poll_once(descriptor);
  if (found < 0 && raw::t_error == EINVAL) return raw::can_write(STDERR_FILENO);
  return found == 1 && descriptor.revents == POLLOUT;  // POLLERR: a pipe without a reader
}

/// How much of the text goes into one write, after which is_ready() is asked again. A terminal is ready if
/// one byte has room; the kernel then has a buffer of 256 for what follows, but after that none for the end
/// of a line, which it writes by itself.
std::size_t piece_of(std::string_view text) noexcept {
  constexpr std::size_t kPiece = 128;
  struct stat now {};
  if (raw::status_of(STDERR_FILENO, now) != 0 || !S_ISCHR(now.st_mode)) return text.size();
  const std::size_t line = std::min(text.find('\n'), text.size());
  return std::clamp<std::size_t>(line, 1, kPiece);
}

void write_clean(std::string_view text) noexcept {
  if (!is_stderr()) return;
  while (!text.empty() && is_ready()) {
    const std::size_t size = piece_of(text);
    // SIGTTOU, which stops a background job of a terminal with "stty tostop", is blocked.
    if (write_without_signal(STDERR_FILENO, text.data(), size) != static_cast<ssize_t>(size)) return;
    text.remove_prefix(size);
  }
}

}  // namespace

void remember_stderr() noexcept {
  struct stat now {};
  const bool open = raw::status_of(STDERR_FILENO, now) == 0;
  g_device = now.st_dev;
  g_inode = now.st_ino;
  g_start.store(open ? Start::open : Start::closed, std::memory_order_release);
}

void keep_silent() noexcept { g_silent.store(true, std::memory_order_relaxed); }

bool log_enabled(LogLevel level) noexcept {
  return options().enabled && level <= options().log && !g_silent.load(std::memory_order_relaxed);
}

void write_stderr(std::string_view text) noexcept {
  char clean[kPipeBuffer];  // a job's log must not hold secrets
  write_clean({clean, report::redact(text, clean).size});
}

void append_printable(std::string_view raw, char* out, std::size_t capacity, std::size_t& size) noexcept {
  for (std::size_t at = 0; at < raw.size() && size < capacity;) {
    const auto lead = static_cast<unsigned char>(raw[at]);
    std::size_t length = lead >= 0xF0 && lead <= 0xF4  ? 4
                         : lead >= 0xE0 && lead < 0xF0 ? 3
                         : lead >= 0xC2 && lead < 0xE0 ? 2
                                                       : 1;
    // U+0080 to U+009F are controls too: a terminal may obey them.
    bool good = length > 1 ? at + length <= raw.size() : lead >= 0x20 && lead < 0x7F;
    for (std::size_t i = 1; good && i < length; ++i)
      good = (static_cast<unsigned char>(raw[at + i]) & 0xC0U) == 0x80;
    if (good && lead == 0xC2) good = static_cast<unsigned char>(raw[at + 1]) >= 0xA0;
    if (!good) length = 1;
    if (length > capacity - size) return;
    if (good)
      for (std::size_t i = 0; i < length; ++i) out[size++] = raw[at + i];
    else
      out[size++] = '?';
    at += length;
  }
}

void log_line(LogLevel level, std::string_view line) noexcept {
  if (!log_enabled(level)) return;
  constexpr std::string_view kPrefix = "kshim: ";
  char text[kPipeBuffer];
  std::size_t size = kPrefix.copy(text, sizeof text);
  append_printable(line, text, sizeof text - 1, size);
  text[size++] = '\n';
  write_stderr({text, size});
}

void warn_about_options() noexcept {
  static std::atomic<bool> g_complained{false};
  const auto complaints = option_complaints();
  if (complaints.empty() || g_complained.exchange(true)) return;
  for (const OptionsStorage::Complaint& complaint : complaints) {
    Text<600> line;
    line << complaint.name << "=" << complaint.value << " is not understood";
    if (complaint.fallback.empty())
      line << "; it is ignored";
    else
      line << "; using " << complaint.fallback;
    log_line(LogLevel::error, line.view());
  }
}

}  // namespace kshim::shim
