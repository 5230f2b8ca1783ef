// SPDX-License-Identifier: Apache-2.0
#include "analyzer/run/terminal_relay.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace kshim::run {
namespace {

/// What the monitor says, and is told.
struct Word {
  enum Kind : int { started, status, go_on, bye } kind;
  int value = 0;
};

void say(int control, Word word) noexcept { ::send(control, &word, sizeof word, MSG_NOSIGNAL); }

/// False where nobody is left to say anything.
bool hear(int control, Word& word) noexcept {
  ssize_t got = 0;
  do {
    got = ::recv(control, &word, sizeof word, 0);
  } while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(sizeof word);
}

int open_tty(const char* path) noexcept { return ::open(path, O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK); }

void copy_size(int from, int to) noexcept {
  winsize size{};
  if (::ioctl(from, TIOCGWINSZ, &size) == 0) ::ioctl(to, TIOCSWINSZ, &size);
}

bool is_same(const termios& a, const termios& b) noexcept {
  return a.c_iflag == b.c_iflag && a.c_oflag == b.c_oflag && a.c_lflag == b.c_lflag &&
         std::equal(std::begin(a.c_cc), std::end(a.c_cc), std::begin(b.c_cc));
}

constexpr std::array<int, 3> kStreams = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};

/// CMD's terminal, as the session leader's child: its own group is in the foreground.
void enter_foreground(int slave, const std::array<bool, 3>& streams) noexcept {
  ::setpgid(0, 0);
  sigset_t background;
  sigemptyset(&background);
  sigaddset(&background, SIGTTOU);
  sigprocmask(SIG_BLOCK, &background, nullptr);  // the program's own mask comes behind
  ::tcsetpgrp(slave, ::getpid());
  for (std::size_t i = 0; i < streams.size(); ++i)
    if (streams[i]) ::dup2(slave, kStreams[i]);
}

struct MonitorFds {
  int control;
  int master;
  int tty;
};

/// Leads CMD's session: waits for CMD, and when the relay has ended, copies what is still written.
[[noreturn]] void lead_session(const MonitorFds& given, pid_t child, const termios& modes) noexcept {
  ignore_signals();
  const std::array<int, 3> kept = {given.control, given.master, given.tty};
  keep_only(kept);
  constexpr MonitorFds fds{0, 1, 2};
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  const int children = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  bool told = true;
  std::array<char, 16384> bytes{};
  while (true) {
    int status = 0;
    for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0;)
      if (pid == child && told) say(fds.control, {Word::status, status});
    std::array<pollfd, 2> ready{{{children, POLLIN, 0}, {told ? fds.control : fds.master, POLLIN, 0}}};
    ::poll(ready.data(), ready.size(), -1);
    signalfd_siginfo info{};
    while (::read(children, &info, sizeof info) > 0) continue;
    if (ready[1].revents == 0) continue;
    if (!told) {
      const ssize_t got = ::read(fds.master, bytes.data(), bytes.size());
      if (got > 0) write_all(fds.tty, {bytes.data(), static_cast<std::size_t>(got)});
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) ::_exit(0);  // nobody has it open
      continue;
    }
    Word word{};
    const bool heard = hear(fds.control, word);
    if (heard && word.kind == Word::go_on) {
      ::tcsetpgrp(fds.master, child);
      ::kill(-child, SIGCONT);
      continue;
    }
    told = false;
    // The run was killed: the terminal is still as its relay needs it.
    if (!heard) ::tcsetattr(fds.tty, TCSADRAIN, &modes);
    // From here on lines end as our terminal ends them.
    termios plain{};
    if (::tcgetattr(fds.master, &plain) != 0) continue;
    plain.c_oflag &= ~static_cast<tcflag_t>(OPOST);
    ::tcsetattr(fds.master, TCSANOW, &plain);
  }
}

}  // namespace

files::Descriptor above_streams(int fd) {
  files::Descriptor given(fd);
  if (fd > STDERR_FILENO || fd < 0) return given;
  return files::Descriptor(::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

void keep_only(std::span<const int> fds) noexcept {
  // First out of the way of each other, then to their places.
  std::array<int, 8> moved{};
  int highest = static_cast<int>(fds.size());
  for (std::size_t i = 0; i < fds.size(); ++i) {
    moved[i] = ::fcntl(fds[i], F_DUPFD, static_cast<int>(2 * fds.size()));
    highest = std::max(highest, moved[i]);
  }
  for (std::size_t i = 0; i < fds.size(); ++i) ::dup2(moved[i], static_cast<int>(i));
  const auto first = static_cast<unsigned>(fds.size());
#ifdef SYS_close_range
  if (::syscall(SYS_close_range, first, ~0U, 0) == 0) return;
#endif
  constexpr rlim_t kMost = 65536;
  rlimit limit{};
  const rlim_t most = ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? std::min(limit.rlim_cur, kMost) : kMost;
  for (auto fd = static_cast<rlim_t>(first); fd < most; ++fd) ::close(static_cast<int>(fd));
}

void ignore_signals() noexcept {
  struct sigaction ignored {};
  ignored.sa_handler = SIG_IGN;
  for (const int signal :
       {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGPIPE, SIGTSTP, SIGTTIN, SIGTTOU, SIGALRM})
    ::sigaction(signal, &ignored, nullptr);
}

bool write_all(int fd, std::span<const char> bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put > 0) bytes = bytes.subspan(static_cast<std::size_t>(put));
    if (put >= 0 || errno == EINTR) continue;
    if (errno != EAGAIN) return false;
    pollfd room{fd, POLLOUT, 0};
    ::poll(&room, 1, -1);
  }
  return true;
}

bool TerminalRelay::Buffer::fill(int fd) noexcept {
  const ssize_t got = ::read(fd, bytes.data(), bytes.size());
  if (got <= 0) return got < 0 && (errno == EAGAIN || errno == EINTR);
  begin = 0;
  end = static_cast<std::size_t>(got);
  return true;
}

void TerminalRelay::Buffer::end_lines_once() noexcept {
  std::size_t to = begin;
  for (std::size_t at = begin; at < end; ++at)
    if (bytes[at] != '\r' || at + 1 == end || bytes[at + 1] != '\n') bytes[to++] = bytes[at];
  end = to;
}

bool TerminalRelay::Buffer::drain(int fd) noexcept {
  const ssize_t put = ::write(fd, bytes.data() + begin, end - begin);
  if (put > 0) begin += static_cast<std::size_t>(put);
  return put >= 0 || errno == EAGAIN || errno == EINTR;
}

std::unique_ptr<TerminalRelay> TerminalRelay::open() {
  std::unique_ptr<TerminalRelay> out(new TerminalRelay);
  if (!out->open_terminals()) return nullptr;
  return out;
}

TerminalRelay::~TerminalRelay() {
  if (raw_) ::tcsetattr(tty_.get(), TCSADRAIN, &modes_);
}

bool TerminalRelay::open_terminals() {
  struct stat screen {};
  if (::tcgetpgrp(STDERR_FILENO) < 0 || ::fstat(STDERR_FILENO, &screen) != 0) return false;
  for (std::size_t i = 0; i < kStreams.size(); ++i) {
    struct stat stream {};
    streams_[i] = ::fstat(kStreams[i], &stream) == 0 && S_ISCHR(stream.st_mode) &&
                  stream.st_rdev == screen.st_rdev && ::isatty(kStreams[i]) != 0;
  }
  if (!streams_[1] || !streams_[2]) return false;
  tty_ = above_streams(open_tty("/proc/self/fd/2"));
  master_ = above_streams(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  std::array<char, 64> name{};
  if (!tty_ || !master_ || ::grantpt(master_.get()) != 0 || ::unlockpt(master_.get()) != 0 ||
      ::ptsname_r(master_.get(), name.data(), name.size()) != 0 || ::tcgetattr(tty_.get(), &modes_) != 0)
    return false;
  of_the_shell_ = ::tcgetpgrp(tty_.get()) != ::getpgrp();
  slave_ = above_streams(open_tty(name.data()));
  // CMD's own description must block.
  if (!slave_ || ::fcntl(slave_.get(), F_SETFL, 0) != 0 || ::tcsetattr(slave_.get(), TCSANOW, &modes_) != 0)
    return false;
  resize();
  return true;
}

pid_t TerminalRelay::start(const std::function<void()>& program) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return 0;
  control_ = above_streams(ends[0]);
  files::Descriptor theirs = above_streams(ends[1]);
  look_at_the_job();  // before CMD's first word
  monitor_ = ::fork();
  if (monitor_ == 0) {
    ::setsid();
    ::ioctl(slave_.get(), TIOCSCTTY, 0);
    const pid_t child = ::fork();
    if (child == 0) {
      enter_foreground(slave_.get(), streams_);
      program();
      ::_exit(127);
    }
    if (child > 0) ::setpgid(child, child);
    say(theirs.get(), {Word::started, child > 0 ? child : -errno});
    if (child < 0) ::_exit(1);
    lead_session({theirs.get(), master_.get(), tty_.get()}, child, modes_);
  }
  if (monitor_ < 0) return 0;
  theirs = files::Descriptor();
  Word word{};
  if (!hear(control_.get(), word) || word.value <= 0) {
    errno = word.value < 0 ? -word.value : ECHILD;
    return 0;
  }
  return word.value;
}

void TerminalRelay::look_at_the_job() {
  if (::tcgetpgrp(tty_.get()) != ::getpgrp()) {
    raw_ = false;  // a shell has the terminal
    return;
  }
  if (raw_ || !readable_) return;
  termios raw{};
  if (::tcgetattr(tty_.get(), &raw) != 0) return;
  // Begun in the background: the modes that were there are those of the shell's line editor.
  if (std::exchange(of_the_shell_, false)) {
    termios of_cmd{};
    if (::tcgetattr(slave_.get(), &of_cmd) == 0 && is_same(of_cmd, modes_))
      ::tcsetattr(slave_.get(), TCSANOW, &raw);
    modes_ = raw;
  }
  ::cfmakeraw(&raw);
  raw_ = ::tcsetattr(tty_.get(), TCSADRAIN, &raw) == 0;
}

void TerminalRelay::resize() const { copy_size(tty_.get(), master_.get()); }

void TerminalRelay::add_to(std::vector<pollfd>& fds) const {
  const auto add = [&](int fd, bool read, bool write) {
    const int events = (read ? POLLIN : 0) | (write ? POLLOUT : 0);
    if (events != 0) fds.push_back({fd, static_cast<short>(events), 0});
  };
  add(control_.get(), true, false);
  add(master_.get(), output_.empty(), !input_.empty());
  add(tty_.get(), raw_ && readable_ && input_.empty(), !output_.empty());
}

void TerminalRelay::take_output(Tail& tail) {
  if (output_.empty()) {
    output_.fill(master_.get());
    tail.add({output_.bytes.data() + output_.begin, output_.end - output_.begin});
  }
  if (!raw_) output_.end_lines_once();
  // A terminal that is gone: CMD hears of it by SIGHUP, not by a terminal that is full.
  if (!output_.empty() && !output_.drain(tty_.get())) output_.begin = output_.end;
}

void TerminalRelay::serve(Tail& tail) {
  look_at_the_job();
  take_output(tail);
  if (raw_ && readable_ && input_.empty()) readable_ = input_.fill(tty_.get());
  if (!input_.empty() && !input_.drain(master_.get())) input_.begin = input_.end;
  pollfd word{control_.get(), POLLIN, 0};
  if (!ended_ && ::poll(&word, 1, 0) > 0) listen(tail);
}

void TerminalRelay::listen(Tail& tail) {
  Word word{};
  if (!hear(control_.get(), word)) {
    ended_ = SIGKILL;  // the monitor was killed, and with it CMD's terminal
    return;
  }
  if (WIFSTOPPED(word.value))
    suspend(WSTOPSIG(word.value), tail);
  else
    ended_ = word.value;
}

// As the key would have done without a terminal in between: the whole job stops.
void TerminalRelay::suspend(int signal, Tail& tail) {
  if (signal != SIGTSTP && signal != SIGTTIN && signal != SIGTTOU) return;  // somebody's kill
  do {
    take_output(tail);
  } while (!output_.empty());
  if (raw_) ::tcsetattr(tty_.get(), TCSADRAIN, &modes_);
  raw_ = false;
  ::kill(0, signal);
  look_at_the_job();
  resize();
  say(control_.get(), {Word::go_on, 0});
}

void TerminalRelay::finish(Tail& tail) {
  pollfd output{master_.get(), POLLIN, 0};
  while (true) {
    take_output(tail);
    if (!output_.empty()) {
      pollfd room{tty_.get(), POLLOUT, 0};
      ::poll(&room, 1, -1);
    } else if (::poll(&output, 1, 0) <= 0 || (output.revents & POLLIN) == 0) {
      break;
    }
  }
  look_at_the_job();
  // stty(1) may have been CMD.
  termios last{};
  if (raw_ && ::tcgetattr(slave_.get(), &last) == 0) ::tcsetattr(tty_.get(), TCSADRAIN, &last);
  raw_ = false;
  say(control_.get(), {Word::bye, 0});
  // A pipeline's other programs would have had the key as well.
  const int status = ended_.value_or(0);
  if (!streams_[0] && WIFSIGNALED(status) && (WTERMSIG(status) == SIGINT || WTERMSIG(status) == SIGQUIT))
    ::kill(0, WTERMSIG(status));
}

}  // namespace kshim::run
