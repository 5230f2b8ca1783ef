// SPDX-License-Identifier: Apache-2.0
#include "report/report_file.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "guest/clock.h"
#include "guest/errno_keeper.h"
#include "guest/process_generation.h"
#include "guest/reentry_guard.h"
#include "guest/scratch_stack.h"
#include "guest/signals.h"
#include "guest/syscalls.h"
#include "guest/text_buffer.h"
#include "guest/timed_lock.h"
#include "report/process_record.h"
#include "report/report_path.h"
#include "report/run_socket.h"
#include "report/stderr_log.h"

namespace kshim::shim {
namespace {

// Room for 64 native and 128 Python frames with long names; pages that are not used cost nothing.
constexpr std::size_t kRecordSize = 524288;

/// Whose state this is, by process_mark(): a fork's child sees its parent's.
std::atomic<std::uint32_t> g_process{0};
std::atomic<std::uint32_t> g_number{0};  // of g_process's report; 0 where none could be made
std::atomic<std::uint64_t> g_dropped{0};
std::atomic<bool> g_ended{false};
std::atomic<EndCounts (*)(Ending) noexcept> g_count{nullptr};

PatientLock g_lock;  // guards what follows
std::uint32_t g_reports = 0;
constinit ReportFile g_file;
constinit EnvironmentCopy g_environment;
std::uint64_t g_bytes = 0;
bool g_full = false;  // it has been said
std::uint64_t g_seq = 0;
std::uint64_t g_start = 0;
constinit char g_record[kRecordSize] = {};

ssize_t write_whole(std::string_view line) noexcept {
  ssize_t written = 0;
  do written = raw::write_file(g_file.fd, line.data(), line.size());
  while (written < 0 && errno == EINTR);
  return written;
}

/// The host may set a limit at any time.
bool size_is_limited() noexcept {
  rlimit limit{};
  return raw::get_limit(RLIMIT_FSIZE, limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

/// Under the lock. One write; what comes out shorter (disk full, size limit) is taken back.
bool append(std::string_view line) noexcept {
  if (line.empty()) return false;
  if (!still_open(g_file) && !(reopen_report(g_file) && still_open(g_file))) return false;
  ssize_t written = 0;
  if (size_is_limited()) {
    const SignalShield shield(SIGXFSZ);
    written = write_whole(line);
  } else {
    written = write_whole(line);
  }
  if (written == static_cast<ssize_t>(line.size())) return true;
  struct stat info {};
  if (written > 0 && raw::status_of(g_file.fd, info) == 0 && info.st_size >= written) [[maybe_unused]]
    const int cut = raw::shorten_file(g_file.fd, info.st_size - written);
  return false;
}

/// Under the lock. Beyond KSHIM_MAX_BYTES only what there is a bounded number of: each distinct failure, the
/// objects and devices that it refers to, and the end.
bool has_place(std::string_view line) noexcept {
  if (g_bytes + line.size() <= options().max_bytes) return true;
  constexpr std::string_view kKept[] = {"{\"type\":\"failure\"", "{\"type\":\"object\"",
                                        "{\"type\":\"device\"", "{\"type\":\"end\""};
  if (!g_full) {
    g_full = true;
    PathText text;
    text << g_file.path.view() << " has KSHIM_MAX_BYTES: from here on it gets new failures alone";
    say(LogLevel::warn, text.view());
  }
  for (const std::string_view kept : kKept)
    if (line.starts_with(kept)) return true;
  return false;
}

/// Under the lock.
void start_report(std::uint32_t process) noexcept {
  if (still_open(g_file)) raw::close_file(g_file.fd);  // the parent's
  g_file = ReportFile();
  g_environment.capture();
  utsname system{};
  ProcessNames names;
  names.host = uname(&system) == 0 && system.nodename[0] != 0 ? system.nodename : "localhost";
  names.pid = process_id();
  names.rank = rank_of(g_environment).value_or(0);
  g_dropped.store(0);
  g_ended.store(false);
  g_seq = 0;
  g_bytes = 0;
  g_full = false;
  std::uint32_t number = 0;
  if (open_report(options(), g_environment, names, g_file)) {
    number = ++g_reports;
    g_start = now_nanoseconds();
    ProcessRecord record(g_record, g_seq++, 0);
    fill_process_record(record, names, g_environment);
    if (!append(record.finish())) count_dropped();
    PathText line;
    line << "the report is " << g_file.path.view();
    say(LogLevel::info, line.view());
  }
  note_report(g_file.path.view());
  g_number.store(number, std::memory_order_relaxed);
  g_process.store(process, std::memory_order_release);
}

}  // namespace

std::uint32_t begin_report() noexcept {
  const std::uint32_t process = process_mark();
  if (g_process.load(std::memory_order_acquire) == process) return g_number.load(std::memory_order_relaxed);
  if (!options().enabled) return 0;
  const ErrnoKeeper keeper;
  complain_about_options();
  const LockGuard guard(g_lock);
  if (!guard) {
    count_dropped();  // of the report that another thread is beginning
    return 0;
  }
  if (g_process.load(std::memory_order_acquire) != process) start_report(process);
  return g_number.load(std::memory_order_relaxed);
}

std::uint32_t current_report() noexcept {
  return g_process.load(std::memory_order_acquire) == process_mark()
             ? g_number.load(std::memory_order_relaxed)
             : 0;
}

std::string_view report_path() noexcept {
  if (current_report() == 0) return {};
  return relative_to(g_file.path.view(), options().start_folder);
}

void at_report_end(EndCounts (*count)(Ending) noexcept) noexcept { g_count.store(count); }

void count_dropped() noexcept { g_dropped.fetch_add(1, std::memory_order_relaxed); }

namespace {

void write_end(Ending ending) noexcept {
  const auto count = g_count.load();
  const EndCounts counts = count == nullptr ? EndCounts() : count(ending);
  write_record<report::RecordType::end>([&counts](auto& record) {
    record.template add<report::Field::end_time>(time_now().view());
    record.template add<report::Field::end_failures>(counts.failures);
    record.template add<report::Field::end_modules>(counts.modules);
    record.template add<report::Field::end_dropped>(g_dropped.load());
  });
}

}  // namespace

void end_report(Ending ending) noexcept {
  // In a signal handler that interrupted the shim nothing can be written: the lock is the interrupted
  // thread's.
  const Busy busy;
  if (!busy || current_report() == 0) return;
  // A vfork's child that could not exec ends itself, not its parent.
  if (process_id() != raw::process()) return;
  if (g_ended.exchange(true)) return;
  const ErrnoKeeper keeper;
  [[maybe_unused]] const bool done = with_room([ending] { write_end(ending); });
}

RecordSlot::RecordSlot() noexcept {
  const ErrnoKeeper keeper;
  if (begin_report() == 0) return;
  held_ = g_lock.acquire();
  if (!held_) count_dropped();
}

RecordSlot::~RecordSlot() {
  if (held_) g_lock.release();
}

std::span<char> RecordSlot::storage() const noexcept { return g_record; }
std::uint64_t RecordSlot::seq() const noexcept { return g_seq; }
std::uint64_t RecordSlot::time() const noexcept { return now_nanoseconds() - g_start; }

bool RecordSlot::write(std::string_view line) noexcept {
  const ErrnoKeeper keeper;
  ++g_seq;
  const bool written = has_place(line) && append(line);
  if (written)
    g_bytes += line.size();
  else
    count_dropped();
  return written;
}

}  // namespace kshim::shim
