// SPDX-License-Identifier: Apache-2.0
#include "report/report_file.h"

#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "guest/clock.h"
#include "guest/options.h"
#include "guest/process_generation.h"
#include "guest/selection.h"
#include "guest/signals.h"
#include "guest/syscalls.h"
#include "guest/text_buffer.h"
#include "kshim/report/kept_image.h"
#include "report/run_socket.h"
#include "report/stderr_log.h"

namespace kshim::shim {
namespace {

using report::Field;
using report::RecordType;

/// The process_generation() that g_number belongs to: a child of fork inherits its parent's.
std::atomic<std::uint32_t> g_process{0};
std::atomic<std::uint32_t> g_number{0};      // 0 if no report could be made
std::atomic<std::uint32_t> g_process_id{0};  ///< of the process that began the report
std::atomic<std::uint32_t> g_reports{0};     ///< begun in this process and its ancestors
std::atomic<std::uint64_t> g_dropped{0};
std::atomic<std::uint32_t> g_dropped_in{0};  ///< the process_generation() that g_dropped belongs to

/// A child of fork inherits its parent's count, with the records that the parent's threads were writing.
void start_count_of_dropped(std::uint32_t process) noexcept {
  const std::uint32_t before = g_dropped_in.load(std::memory_order_relaxed);
  if (before == process) return;
  g_dropped_in.store(process, std::memory_order_relaxed);
  if (before != 0) g_dropped.store(0, std::memory_order_relaxed);
}
std::atomic<Report*> g_report{nullptr};

/// All signals are blocked: only a sandbox's supervisor or a file system's server answers EINTR, and it may
/// do so forever.
ssize_t write_whole(int fd, std::string_view line) noexcept {
  constexpr int kMaxTries = 64;
  ssize_t written = -1;
  for (int tries = 0; tries < kMaxTries; ++tries) {
    written = write_without_signal(fd, line.data(), line.size());
    if (written >= 0 || raw::t_error != EINTR) break;
  }
  return written;
}

template <class Record>
void fill_end(Record& record, std::uint64_t failures, std::uint64_t modules) noexcept {
  record.template add<Field::end_time>(time_now().view());
  record.template add<Field::end_failures>(failures);
  record.template add<Field::end_modules>(modules);
  record.template add<Field::end_dropped>(g_dropped.load(std::memory_order_relaxed));
}

}  // namespace

std::uint32_t current_report() noexcept {
  return g_number.load(std::memory_order_relaxed) != 0 &&
                 g_process.load(std::memory_order_acquire) == process_generation()
             ? g_number.load(std::memory_order_relaxed)
             : 0;
}

bool has_parents_report() noexcept {
  const std::uint32_t process = g_process.load(std::memory_order_acquire);
  return process != 0 && process != process_generation();
}

bool is_process_of_report() noexcept {
  return g_process_id.load(std::memory_order_relaxed) == raw::process();
}

void count_dropped(std::uint64_t records) noexcept {
  start_count_of_dropped(process_generation());
  g_dropped.fetch_add(records, std::memory_order_relaxed);
}

/// Makes one write; a partial write (disk full, size limit) is undone.
bool Report::append(std::string_view line) noexcept {
  ssize_t written = -1;
  // Another thread of the host may close the descriptor between the check and the write.
  for (int tries = 0; tries < 2; ++tries) {
    if (!still_open(file_) && !(reopen_report(file_) && still_open(file_))) return false;
    written = write_whole(file_.fd, line);
    if (written >= 0 || raw::t_error != EBADF) break;
  }
  if (written == static_cast<ssize_t>(line.size())) return true;
  if (!failed_write_said_ && (written >= 0 || raw::t_error != EBADF)) {
    failed_write_said_ = true;
    const std::string_view reason = reason_of(written >= 0 ? ENOSPC : raw::t_error);
    PathText text;
    text << "cannot write to " << file_.path.view().substr(0, 1500) << (reason.empty() ? "" : ": ") << reason
         << "; what is missing is counted in the end record";
    log_line(LogLevel::warn, text.view());
  }
  struct stat info {};
  if (written > 0 && raw::status_of(file_.fd, info) == 0 && info.st_size >= written) [[maybe_unused]]
    const int cut = raw::shorten_file(file_.fd, info.st_size - written);
  return false;
}

/// Beyond KSHIM_MAX_BYTES, only records of bounded number are written: `kept`.
bool Report::has_room(std::string_view line, bool kept) noexcept {
  if (bytes_ + line.size() <= options().max_bytes) return true;
  if (!full_) {
    full_ = true;
    PathText text;
    text << file_.path.view() << " has KSHIM_MAX_BYTES: from here on it gets new failures alone";
    log_line(LogLevel::warn, text.view());
  }
  return kept;
}

bool Report::keep_or_drop(std::string_view line, bool kept) noexcept {
  if (line.empty() || !has_room(line, kept)) {
    count_dropped();
    return false;
  }
  bytes_ += line.size();
  unwritten_ += line.size();
  ++lines_;
  return true;
}

void Report::flush() noexcept {
  if (unwritten_ != 0 && !append({records_, unwritten_})) {
    bytes_ -= unwritten_;
    count_dropped(lines_);
    for (std::size_t i = 0; i < noted_; ++i) std::memset(notes_[i].said, 0, notes_[i].size);
  }
  unwritten_ = noted_ = 0;
  lines_ = 0;
}

/// Makes the file and its first record.
void Report::open(std::uint64_t sample) noexcept {
  environment_.capture();
  utsname system{};
  ProcessNames names;
  names.host = raw::system_names(system) == 0 && system.nodename[0] != 0 ? system.nodename : "localhost";
  names.pid = raw::process();
  names.rank = rank_of(environment_).value_or(0);
  std::uint32_t number = 0;
  opened_ = open_report(options(), environment_, names, file_);
  if (opened_) {
    number = g_reports.fetch_add(1, std::memory_order_relaxed) + 1;
    last_ = start_ = now_nanoseconds();
    ::kshim::report::hide(options().is_private ? &environment_.user() : nullptr);
    ProcessRecord record(room(), seq_.fetch_add(1, std::memory_order_relaxed), 0);
    fill_process_record(record, names, environment_, sample, process_record_);
    keep_or_drop(record.finish(), true);
    PathText line;
    line << "the report is " << file_.path.view();
    log_line(LogLevel::info, line.view());
  }
  note_report(file_.path.view());
  g_report.store(this, std::memory_order_relaxed);
  g_number.store(number, std::memory_order_relaxed);
}

void Report::start(std::uint32_t process) noexcept {
  if (opened_ && still_open(file_)) raw::close_file(file_.fd);  // the parent's
  file_ = ReportFile();
  opened_ = false;
  start_count_of_dropped(process);  // what this process dropped before its report counts in it
  unwritten_ = noted_ = 0;
  lines_ = 0;
  ended_.store(false, std::memory_order_relaxed);
  seq_.store(0, std::memory_order_relaxed);
  bytes_ = image_bytes_ = 0;
  full_ = false;
  failed_write_said_ = false;
  failures_.store(0, std::memory_order_relaxed);
  modules_.store(0, std::memory_order_relaxed);
  // `kshim run` records its processes whole.
  waits_ = options().run_id.data() == nullptr && !is_chosen(options().sample);
  if (waits_)
    g_number.store(0, std::memory_order_relaxed);
  else
    open(options().sample);
  g_process_id.store(raw::process(), std::memory_order_relaxed);
  g_process.store(process, std::memory_order_release);
}

std::uint32_t Report::begin_at_failure() noexcept {
  begin();
  if (waits_) {
    waits_ = false;
    open(1);
    number_ = g_number.load(std::memory_order_relaxed);
  }
  return number_;
}

std::uint32_t Report::begin_first() noexcept {
  if (!options().enabled) return 0;
  const std::uint32_t process = process_generation();
  if (g_process.load(std::memory_order_relaxed) != process) {
    warn_about_options();
    start(process);
  }
  number_ = g_number.load(std::memory_order_relaxed);
  begun_in_ = process;
  return number_;
}

bool Report::take_room_for_image(std::uint64_t size, PathText& path) noexcept {
  using namespace ::kshim::report;
  if (begin() == 0 || full_ || size > kMaxKeptImage || image_bytes_ + size > kMaxKeptImages) return false;
  image_bytes_ += size;
  path = file_.path;
  return true;
}

std::string_view Report::path() const noexcept {
  if (current_report() == 0) return {};
  return relative_to(file_.path.view(), options().start_folder);
}

void Report::end() noexcept {
  if (current_report() == 0 || ended_.exchange(true)) return;
  write<RecordType::end>([this](auto& record) { fill_end(record, failures_.load(), modules_.load()); });
}

void Report::end_immediately() noexcept {
  Report* const report = current_report() == 0 ? nullptr : g_report.load(std::memory_order_relaxed);
  const ScopedBlockSignals held;
  if (report == nullptr || report->ended_.exchange(true) || !still_open(report->file_)) return;
  char line[512];
  ::kshim::report::Record<RecordType::end> record(line, report->seq_.fetch_add(1, std::memory_order_relaxed),
                                                  now_nanoseconds() - report->start_);
  fill_end(record, report->failures_.load(), report->modules_.load());
  write_whole(report->file_.fd, record.finish());
}

}  // namespace kshim::shim
