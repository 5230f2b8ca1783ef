// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/stat.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <ctime>

#include "analyzer/cli/command.h"
#include "analyzer/cli/terminal.h"
#include "analyzer/core/text.h"
#include "kshim/files/open_file.h"

namespace kshim::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxText = 4096;

long g_patience = 0;  ///< seconds
constexpr int kGoOn = -1;
std::atomic<int> g_status = kGoOn;

/// Which argument of a system call that may wait for a file system says what file it is.
struct Call {
  long number;
  unsigned argument;
  bool is_path;
};
constexpr Call kCalls[] = {
#ifdef SYS_open
    {SYS_open, 0, true},        {SYS_stat, 0, true},       {SYS_lstat, 0, true},    {SYS_access, 0, true},
    {SYS_readlink, 0, true},
#endif
    {SYS_openat, 1, true},      {SYS_newfstatat, 1, true}, {SYS_statx, 1, true},    {SYS_readlinkat, 1, true},
    {SYS_faccessat, 1, true},   {SYS_read, 0, false},      {SYS_pread64, 0, false}, {SYS_fstat, 0, false},
    {SYS_getdents64, 0, false}, {SYS_lseek, 0, false},     {SYS_mmap, 4, false},    {SYS_write, 0, false},
};

std::string text_of(int thread, std::string_view file) {
  return files::read_up_to(fmt::format("/proc/self/task/{}/{}", thread, file), kMaxText).value_or("");
}

/// A text of this process, which may be no longer there.
std::string text_at(unsigned long address) {
  std::array<char, 256> piece{};
  std::string out;
  // Never across the end of a page: the next one may not be there.
  for (std::size_t size = 0; out.size() < kMaxText; address += size) {
    size = piece.size() - address % piece.size();
    const iovec here{piece.data(), size};
    const iovec there{reinterpret_cast<void*>(address), size};
    if (::process_vm_readv(::getpid(), &here, 1, &there, 1, 0) != static_cast<ssize_t>(size)) break;
    const std::string_view text(piece.data(), size);
    out += text.substr(0, text.find('\0'));
    if (contains(text, '\0')) break;
  }
  return out;
}

/// What a thread waits for. The kernel says "0 0x3 0x7f... ", with the system call first; "running"; or
/// -1 for a page of a mapped file. Empty where it is no file's.
std::string file_waited_for(int thread) {
  const std::vector<std::string> words = split(text_of(thread, "syscall"), " \n");
  const auto number = parse_number<long>(words.front());
  if (!number) return {};
  // Not a stopped one.
  const std::string status = text_of(thread, "status");
  if (!contains(status, "State:\tS") && !contains(status, "State:\tD")) return {};
  if (*number < 0) return files::last_opened(thread);
  const auto* const call = std::ranges::find(kCalls, *number, &Call::number);
  if (call == std::end(kCalls) || words.size() <= call->argument + 1) return {};
  const std::string& word = words[call->argument + 1];
  const auto argument =
      parse_number<unsigned long>(std::string_view(word).substr(word.starts_with("0x") ? 2 : 0), 16)
          .value_or(0);
  if (call->is_path) {
    const std::string path = text_at(argument);
    return path.empty() || path.starts_with("/proc/self/fd/") ? files::last_opened(thread) : path;
  }
  // A pipe and a terminal wait for somebody else. The file system is not asked: it would not answer us
  // either.
  struct statx found {};
  if (::syscall(SYS_statx, static_cast<int>(argument), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE,
                &found) != 0 ||
      (!S_ISREG(found.stx_mode) && !S_ISDIR(found.stx_mode)))
    return {};
  std::error_code error;
  return fs::read_symlink(fmt::format("/proc/self/fd/{}", argument), error);
}

/// All that changes while a thread does anything.
std::string progress_of(int thread) {
  const std::string status = text_of(thread, "status");
  const std::size_t switches = status.find("voluntary_ctxt_switches:");
  return text_of(thread, "syscall") + (switches == std::string::npos ? "" : status.substr(switches));
}

[[noreturn]] void give_up(const std::string& file, int status) {
  print_error(fmt::format("{}: its file system has not answered for {} s (--io-timeout)", sanitize(file),
                          g_patience));
  // Where even SIGKILL has to wait for the file system, nobody who reads what we wrote shall.
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(stream);
  ::_exit(status);
}

struct Seen {
  std::string progress;
  long seconds = 0;
};
using Threads = std::map<int, Seen>;

Threads look(const Threads& before) {
  Threads out;
  std::error_code error;
  for (fs::directory_iterator at("/proc/self/task", error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    const int thread = first_number<int>(name).value_or(0);
    Seen seen{.progress = progress_of(thread)};
    const auto last = before.find(thread);
    if (last != before.end() && last->second.progress == seen.progress)
      seen.seconds = last->second.seconds + 1;
    if (const int status = g_status; seen.seconds >= g_patience && status != kGoOn)
      if (const std::string file = file_waited_for(thread); !file.empty()) give_up(file, status);
    out.emplace(thread, std::move(seen));
  }
  return out;
}

void* watch(void* /*unused*/) {
  const timespec second{.tv_sec = 1, .tv_nsec = 0};
  for (Threads threads;;) {
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &second, nullptr);
    try {
      threads = look(threads);
    } catch (const std::bad_alloc&) {
      continue;  // the others need the memory
    }
  }
}

}  // namespace

void end_on_stall(std::chrono::seconds patience, int status) {
  constexpr std::size_t kStack = std::size_t{256} << 10U;
  if (patience.count() == 0) return;
  g_patience = patience.count();
  g_status = status;
  pthread_attr_t attributes;
  pthread_t thread{};
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, kStack);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  ::pthread_create(&thread, &attributes, watch, nullptr);  // without room for it, nobody watches
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_attr_destroy(&attributes);
}

void on_stall(std::optional<int> status) { g_status = status.value_or(kGoOn); }

}  // namespace kshim::cli
