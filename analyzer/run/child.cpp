// SPDX-License-Identifier: Apache-2.0
// CMD stays in our process group, or gets a terminal of its own: the terminal's Ctrl-C, Ctrl-Z and `fg` reach
// it as if we were not there, and it may read from the terminal. What is sent to us alone (kill, a batch
// system) is passed on.
#include "analyzer/run/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "analyzer/core/memory_limit.h"
#include "analyzer/core/user_error.h"
#include "analyzer/run/stderr_capture.h"
#include "analyzer/run/watch.h"

namespace kshim::run {
using core::UserError;
namespace exit_status = core::exit_status;

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::array<int, 6> kPassedOn = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
constexpr milliseconds kGrace{3000};  ///< between SIGTERM and SIGKILL at the time limit
constexpr milliseconds kSlowestLook{250};

/// Blocks the signals that the signalfd reads, and SIGCHLD is not ignored, so that waitpid works. CMD gets
/// back what we had.
class SignalState {
 public:
  SignalState() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGWINCH);
    for (const int signal : kPassedOn) sigaddset(&set, signal);
    sigprocmask(SIG_BLOCK, &set, &mask_);
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &standard, &child_action_);
    fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  ~SignalState() {
    close(fd_);
    restore();
  }
  SignalState(const SignalState&) = delete;
  SignalState& operator=(const SignalState&) = delete;
  void restore() const {
    sigaction(SIGCHLD, &child_action_, nullptr);
    sigprocmask(SIG_SETMASK, &mask_, nullptr);
  }
  int fd() const noexcept { return fd_; }

 private:
  sigset_t mask_{};
  struct sigaction child_action_ {};
  int fd_ = -1;
};

// systemd names the process that it starts in these variables, and a service believes what comes with them
// (its sockets, the watchdog's interval) only if the number is its own. CMD is that service: where they name
// this process, they are to name CMD.
constexpr std::array<std::string_view, 3> kServiceNumbers = {"LISTEN_PID", "WATCHDOG_PID",
                                                             "SYSTEMD_EXEC_PID"};
constexpr std::string_view kNumberRoom = "0000000000";

void make_room_for_number(Environment& environment) {
  const std::string own = std::to_string(getpid());
  for (const std::string_view name : kServiceNumbers) {
    if (environment.get(name) == own) environment.set(name, kNumberRoom);
  }
  // The inode of this process's pidfd. Services ask for it only where it is there.
  if (environment.get("LISTEN_PID") == kNumberRoom) environment.remove("LISTEN_PIDFDID");
}

/// In the child: no allocation.
void write_number(const std::vector<char*>& variables) {
  for (char* const entry : variables) {
    if (entry == nullptr) return;
    const std::string_view text(entry);
    const std::size_t equals = std::min(text.find('='), text.size());
    if (text.size() != equals + 1 + kNumberRoom.size() || !text.ends_with(kNumberRoom)) continue;
    if (std::ranges::find(kServiceNumbers, text.substr(0, equals)) == kServiceNumbers.end()) continue;
    *std::to_chars(entry + equals + 1, entry + text.size(), getpid()).ptr = 0;
  }
}

/// In the child, between fork and exec: nothing but system calls.
[[noreturn]] void execute(const char* program, std::vector<char*>& arguments, std::vector<char*>& environment,
                          std::vector<char*>& shell_arguments, int error_pipe) {
  execve(program, arguments.data(), environment.data());
  // execvp(3): a file without magic is a shell script.
  if (errno == ENOEXEC) execve("/bin/sh", shell_arguments.data(), environment.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(error_pipe, &error, sizeof error);
  _exit(exit_status::kRunFailed);
}

/// A pipe of CMD's ends when CMD closes it: what we print goes to stderr, or to a file that is open by now.
void leave_streams() {
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing < 0) return;
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO})
    if (nothing != stream) ::dup2(nothing, stream);
  if (nothing > STDERR_FILENO) ::close(nothing);
}

pid_t start(const ChildSpec& spec, Environment& environment, const SignalState& signals,
            StderrCapture& capture) {
  std::string program = spec.program.string();
  std::string shell = "/bin/sh";
  std::vector<std::string> texts = spec.arguments;
  std::vector<char*> arguments;
  std::vector<char*> shell_arguments = {shell.data(), program.data()};
  arguments.reserve(texts.size() + 1);
  for (std::string& text : texts) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  shell_arguments.insert(shell_arguments.end(), arguments.begin() + 1, arguments.end());
  make_room_for_number(environment);
  std::vector<char*> variables = environment.pointers();

  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw UserError(fmt::format("cannot make a pipe: {}", std::strerror(errno)), exit_status::kRunFailed);
  }
  const pid_t pid = capture.start([&] {
    signals.restore();
    core::lift_memory_limit();
    write_number(variables);
    execute(program.c_str(), arguments, variables, shell_arguments, ends[1]);
  });
  if (pid <= 0)
    throw UserError(fmt::format("cannot fork: {}", std::strerror(errno)), exit_status::kRunFailed);
  close(ends[1]);
  int error = 0;
  ssize_t got = 0;
  do {
    got = read(ends[0], &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  close(ends[0]);
  if (got != static_cast<ssize_t>(sizeof error)) {
    leave_streams();
    return pid;
  }
  waitpid(pid, nullptr, 0);  // a monitor's is its own
  if (error == ENOENT) {
    throw UserError(fmt::format("{}: the interpreter or loader that it names does not exist", program),
                    exit_status::kNotFound);
  }
  throw UserError(fmt::format("{}: cannot be executed: {}", program, std::strerror(error)),
                  exit_status::kNotExecutable);
}

/// The processes of CMD: below us, and none of ours.
std::vector<pid_t> processes_of_cmd(pid_t helper) {
  std::vector<pid_t> out = descendants(getpid());
  std::erase(out, helper);
  return out;
}

/// Ends everything that CMD started: SIGTERM, and SIGKILL where that was not enough.
struct TimeLimit {
  bool reached() const noexcept { return signal != 0; }
  void check(pid_t helper) {
    if (!next || Clock::now() < *next) return;
    signal = signal == 0 ? SIGTERM : SIGKILL;
    if (signal == SIGKILL) ++kills;
    for (const pid_t pid : processes_of_cmd(helper)) kill(pid, signal);
    next = Clock::now() + kGrace;
  }
  /// SIGKILL did not end what is left: it is another user's by now, waits in a driver, or forks all the time.
  bool is_over() const noexcept { return kills > 2; }

  std::optional<Clock::time_point> next;
  int signal = 0;
  int kills = 0;
};

void pass_on(int signal_fd, pid_t child, const TerminalRelay* relay) {
  signalfd_siginfo info{};
  while (read(signal_fd, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) continue;
    if (signal == SIGWINCH) {
      if (relay != nullptr) relay->resize();
      continue;
    }
    // SI_KERNEL: from the terminal, which sends it to the whole group. CMD is in it, unless it has a terminal
    // of its own.
    if (info.ssi_code != SI_KERNEL)
      kill(child, signal);
    else if (relay != nullptr)
      kill(-child, signal);
  }
}

void take_status(int status, ChildOutcome& outcome) {
  if (WIFEXITED(status)) outcome.exit_status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome.term_signal = WTERMSIG(status);
}

/// Reaps what ended; orphans come to us as their subreaper.
void reap(ChildOutcome& outcome, const TerminalRelay* relay) {
  int status = 0;
  for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0; pid = waitpid(-1, &status, WNOHANG))
    if (pid == outcome.pid) take_status(status, outcome);
  if (relay != nullptr && relay->ended()) take_status(*relay->ended(), outcome);
}

bool has_ended(const ChildOutcome& outcome) {
  return outcome.exit_status.has_value() || outcome.term_signal.has_value();
}

}  // namespace

ChildOutcome run_child(const ChildSpec& spec, Environment environment) {
  // Orphans stay below us, where the time limit and the search for blind processes find them.
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  const SignalState signals;
  ChildOutcome outcome;
  TimeLimit limit;
  if (spec.time_limit) limit.next = Clock::now() + *spec.time_limit;
  StderrCapture capture(spec.captures);
  TerminalRelay* const relay = capture.relay();
  outcome.pid = start(spec, environment, signals, capture);
  while (true) {
    reap(outcome, relay);
    // What CMD leaves behind may go on, except at the time limit.
    if (has_ended(outcome) && (!limit.reached() || processes_of_cmd(capture.helper()).empty())) break;
    if (limit.is_over()) {
      if (!has_ended(outcome)) outcome.term_signal = SIGKILL;
      break;
    }
    milliseconds wait = kSlowestLook;
    if (limit.next)
      wait = std::clamp(std::chrono::ceil<milliseconds>(*limit.next - Clock::now()), milliseconds{0}, wait);
    std::vector<pollfd> ready{{signals.fd(), POLLIN, 0}};
    if (relay != nullptr) relay->add_to(ready);
    poll(ready.data(), ready.size(), static_cast<int>(wait.count()));
    pass_on(signals.fd(), outcome.pid, relay);
    if (relay != nullptr) capture.serve();
    limit.check(capture.helper());
  }
  outcome.timed_out = limit.reached();
  outcome.heard = capture.listens();
  outcome.words = capture.words();
  // What this run has sent to its own group.
  signalfd_siginfo own{};
  while (relay != nullptr && read(signals.fd(), &own, sizeof own) > 0) continue;
  return outcome;
}

}  // namespace kshim::run
