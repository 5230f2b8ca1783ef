// SPDX-License-Identifier: Apache-2.0
#include "analyzer/run/stderr_capture.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace kshim::run {
namespace {

constexpr const char* kStderr = "/proc/self/fd/2";

bool is_same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool is_stream(int fd) {
  int type = 0;
  socklen_t size = sizeof type;
  return ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

/// Where the next byte goes that is written to stderr.
std::uint64_t end_of(const struct stat& file) {
  const int flags = ::fcntl(STDERR_FILENO, F_GETFL);
  const off_t at = ::lseek(STDERR_FILENO, 0, SEEK_CUR);
  return static_cast<std::uint64_t>((flags & O_APPEND) != 0 || at < 0 ? file.st_size : at);
}

/// The file's last bytes from `begin` on.
std::string added_to_file(std::uint64_t begin) {
  const files::OpenFile file = files::open_to_read(kStderr);
  if (!file) return {};
  const auto end = static_cast<std::uint64_t>(file.status.st_size);
  if (end < begin) begin = 0;  // CMD has emptied it
  std::string out(std::min<std::uint64_t>(end - begin, Tail::kSize), '\0');
  const ssize_t got = ::pread(file.fd.get(), out.data(), out.size(), static_cast<off_t>(end - out.size()));
  out.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return out;
}

void copy_window_size(int /*signal*/) {
  const int error = errno;
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0) ::ioctl(STDIN_FILENO, TIOCSWINSZ, &size);
  errno = error;
}

/// A process of our own: from descriptor 0 to descriptor 2, until nobody has the other end of 0, or nobody
/// reads what it writes. Descriptor 1 is this run's, which asks it to come to an end with what is there.
[[noreturn]] void copy(Tail& tail) noexcept {
  constexpr int kFrom = 0;
  constexpr int kControl = 1;
  constexpr int kTo = 2;
  constexpr std::size_t kMostAsked = std::size_t{1} << 20;  // children of CMD may go on forever
  static std::array<char, 65536> bytes;
  std::size_t done = 0;
  bool asked = false;
  bool has_run = true;
  while (true) {
    // Where the reader is gone, CMD is to meet that at its next write, as it would without us.
    std::array<pollfd, 3> ready{{{kFrom, POLLIN, 0}, {kTo, 0, 0}, {has_run ? kControl : -1, POLLIN, 0}}};
    if (::poll(ready.data(), ready.size(), asked ? 0 : -1) < 0) continue;  // a window's new size
    if ((ready[1].revents & POLLERR) != 0) ::_exit(0);
    const bool any = (ready[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
    if (any) {
      const ssize_t got = ::read(kFrom, bytes.data(), bytes.size());
      if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) ::_exit(0);
      if (got > 0) {
        const std::span<const char> text(bytes.data(), static_cast<std::size_t>(got));
        tail.add(text);
        // A full device loses it, as CMD's own write would have; a reader that is gone ends CMD's.
        if (!write_all(kTo, text) && errno == EPIPE) ::_exit(0);
        done += text.size();
      }
    }
    if (asked && (!any || done >= kMostAsked)) {
      const char answer = 0;
      ::send(kControl, &answer, 1, MSG_NOSIGNAL);
      asked = false;
    }
    if ((ready[2].revents & (POLLIN | POLLHUP)) != 0) {
      char question = 0;
      has_run = ::recv(kControl, &question, 1, 0) > 0;
      asked = has_run;
      done = 0;
    }
  }
}

}  // namespace

StderrCapture::StderrCapture(bool wanted) {
  struct stat err {};
  if (!wanted || ::fstat(STDERR_FILENO, &err) != 0) return;
  if (S_ISREG(err.st_mode)) {
    if (files::open_to_read(kStderr)) file_begin_ = end_of(err);
    return;
  }
  if (::isatty(STDERR_FILENO) != 0) {
    if (!(relay_ = TerminalRelay::open())) use_terminal();
    return;
  }
  const bool null = S_ISCHR(err.st_mode) && err.st_rdev == makedev(1, 3);
  const bool stream = S_ISFIFO(err.st_mode) || (S_ISSOCK(err.st_mode) && is_stream(STDERR_FILENO));
  if (!null && !stream) return;
  struct stat out {};
  stdout_too_ = use_pipe() && stream && ::fstat(STDOUT_FILENO, &out) == 0 && is_same(out, err);
}

bool StderrCapture::use_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  copy_from(above_streams(ends[0]), above_streams(ends[1]));
  return copier_ > 0;
}

// Its modes are those of a file: what the terminal makes of a line's end, it makes when it is written there.
bool StderrCapture::use_terminal() {
  struct stat err {};
  struct stat out {};
  if (::fstat(STDERR_FILENO, &err) != 0) return false;
  if (::fstat(STDOUT_FILENO, &out) == 0 && S_ISCHR(out.st_mode) && out.st_rdev == err.st_rdev) return false;
  files::Descriptor master = above_streams(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  std::array<char, 64> name{};
  termios modes{};
  if (!master || ::grantpt(master.get()) != 0 || ::unlockpt(master.get()) != 0 ||
      ::ptsname_r(master.get(), name.data(), name.size()) != 0 || ::tcgetattr(STDERR_FILENO, &modes) != 0)
    return false;
  files::Descriptor slave = above_streams(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  modes.c_oflag &= ~static_cast<tcflag_t>(OPOST);
  winsize size{};
  if (!slave || ::tcsetattr(slave.get(), TCSANOW, &modes) != 0 ||
      ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || ::ioctl(slave.get(), TIOCSWINSZ, &size) != 0)
    return false;
  copy_from(std::move(master), std::move(slave));
  return copier_ > 0;
}

void StderrCapture::copy_from(files::Descriptor source, files::Descriptor for_cmd) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return;
  files::Descriptor ours = above_streams(ends[0]);
  const files::Descriptor theirs = above_streams(ends[1]);
  copier_ = ::fork();
  if (copier_ == 0) {
    ignore_signals();
    struct sigaction resized {};
    resized.sa_handler = copy_window_size;
    ::sigaction(SIGWINCH, &resized, nullptr);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    const std::array<int, 3> kept = {source.get(), theirs.get(), STDERR_FILENO};
    keep_only(kept);
    copy(tail_);
  }
  if (copier_ < 0) {
    copier_ = 0;
    return;
  }
  copier_words_ = std::move(ours);
  for_cmd_ = std::move(for_cmd);
}

pid_t StderrCapture::start(const std::function<void()>& program) {
  if (relay_) return relay_->start(program);
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (for_cmd_) ::dup2(for_cmd_.get(), STDERR_FILENO);
    if (for_cmd_ && stdout_too_) ::dup2(for_cmd_.get(), STDOUT_FILENO);
    program();
    ::_exit(127);
  }
  for_cmd_ = files::Descriptor();
  return pid;
}

std::string StderrCapture::words() {
  if (file_begin_) return added_to_file(*file_begin_);
  if (relay_) relay_->finish(tail_);
  if (copier_ > 0) {
    char word = 0;
    if (::send(copier_words_.get(), &word, 1, MSG_NOSIGNAL) == 1)
      while (::recv(copier_words_.get(), &word, 1, 0) < 0 && errno == EINTR) continue;
  }
  return tail_.text();
}

}  // namespace kshim::run
