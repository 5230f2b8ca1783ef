// SPDX-License-Identifier: Apache-2.0
// The report of this process: one file, one write(2) an event, mode 0600, never over an existing file. If no
// file can be made, one line on stderr says so, and records are dropped.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "guest/clock.h"
#include "guest/process_generation.h"
#include "kshim/report/writer.h"
#include "report/environment.h"
#include "report/process_record.h"
#include "report/report_path.h"

namespace kshim::shim {

/// Number of this process's report without beginning one; 0 when there is none. Needs no lock.
std::uint32_t current_report() noexcept;
/// Whether this is a child of fork that has begun no report, and its parent had. Needs no lock.
bool has_parents_report() noexcept;
/// False in a child of vfork, which shares its parent's report. Needs no lock.
bool is_process_of_report() noexcept;
/// Records that could not be written. Needs no lock.
void count_dropped(std::uint64_t records = 1) noexcept;

/// Lies in zeroed memory, which is a report that has not begun.
class Report {
 public:
  /// Makes the file and writes the process record, the first time this process calls it; cheap afterwards (no
  /// system call). Returns the report's number: 0 when there is none. A fork's child has a file and a number
  /// of its own. Ids of objects and modules belong to one report: callers announce them again when the number
  /// changes.
  std::uint32_t begin() noexcept { return begun_in_ == process_generation() ? number_ : begin_first(); }
  /// The same for a failure: it begins the report of a process that KSHIM_SAMPLE left out.
  std::uint32_t begin_at_failure() noexcept;
  /// KSHIM_SAMPLE left this process out, and nothing has failed in it so far.
  bool waits_for_failure() const noexcept { return waits_; }
  /// The file's path, relative to the folder in which the process started if it lies below that; empty if
  /// there is no report.
  std::string_view path() const noexcept;

  /// write<RecordType::repeat>([&](auto& record) { record.template add<Field::repeat_id>(id); ... }): `fill`
  /// adds or null()s every field of the record. False when it was dropped. flush() writes it.
  template <report::RecordType kType, class Fill>
  bool write(const Fill& fill) noexcept {
    return begin() != 0 && write_later<kType>(now_nanoseconds(), fill);
  }
  /// The same for what happened at `when`, by now_nanoseconds(); it is not before the record written last.
  template <report::RecordType kType, class Fill>
  bool write_later(std::uint64_t when, const Fill& fill) noexcept {
    if (begin() == 0) return false;
    last_ = std::max(last_, when);
    report::Record<kType> record(room(), seq_.fetch_add(1, std::memory_order_relaxed), last_ - start_);
    fill(record);
    return keep_or_drop(record.finish(), kKept<kType>);
  }
  /// Writes the records of an event, by one write(2). SlowPath calls it at the event's end.
  void flush() noexcept;
  /// `said` notes that the report has something that this event has written: if the event cannot be written,
  /// it becomes 0 again.
  template <class Number>
  void zero_if_lost(Number& said) noexcept {
    if (noted_ < kMaxNoted) notes_[noted_++] = {&said, sizeof said};
  }

  /// Takes room for an image that is kept beside the report; `path` gets the report's path. False where there
  /// is no room for it, no report, or no room for the record that would name it.
  bool take_room_for_image(std::uint64_t size, PathText& path) noexcept;
  void give_room_back(std::uint64_t size) noexcept { image_bytes_ -= size; }

  void count_failure() noexcept { failures_.fetch_add(1, std::memory_order_relaxed); }
  void count_module() noexcept { modules_.fetch_add(1, std::memory_order_relaxed); }

  /// Writes the end record, once.
  void end() noexcept;
  /// The same without the lock, from counters: for _exit while a thread is in the shim.
  static void end_immediately() noexcept;

 private:
  std::uint32_t begin_first() noexcept;
  void open(std::uint64_t sample) noexcept;
  void start(std::uint32_t process) noexcept;
  bool append(std::string_view line) noexcept;
  bool has_room(std::string_view line, bool kept) noexcept;
  /// `line` lies in room().
  bool keep_or_drop(std::string_view line, bool kept) noexcept;
  /// For the next record.
  std::span<char> room() noexcept {
    if (unwritten_ > kEventSize) flush();
    return {records_ + unwritten_, kRecordSize};
  }

  /// Written beyond KSHIM_MAX_BYTES, too: a bounded number of each distinct failure, what it refers to, and
  /// the end.
  template <report::RecordType kType>
  static constexpr bool kKept = kType == report::RecordType::failure || kType == report::RecordType::object ||
                                kType == report::RecordType::driver || kType == report::RecordType::device ||
                                kType == report::RecordType::end;
  // Room for 64 native and 128 Python frames with long names.
  static constexpr std::size_t kRecordSize = 524288;
  /// An event that has more than this is written in pieces.
  static constexpr std::size_t kEventSize = 65536;
  static constexpr std::size_t kMaxNoted = 64;
  struct Note {
    void* said;
    std::size_t size;
  };
  std::uint32_t begun_in_;  ///< a process_generation()
  std::uint32_t number_;
  bool opened_;
  bool waits_;
  ReportFile file_;
  EnvironmentCopy environment_;
  ProcessRecordRoom process_record_;
  std::atomic<bool> ended_;
  std::atomic<std::uint64_t> seq_;
  std::atomic<std::uint64_t> failures_;
  std::atomic<std::uint64_t> modules_;
  std::uint64_t start_;        ///< the time of the process record
  std::uint64_t last_;         ///< of the record written last
  std::uint64_t bytes_;        ///< with those that are not yet written
  std::uint64_t image_bytes_;  ///< of the images that are kept beside it
  bool full_;                  ///< stderr says so
  bool failed_write_said_;     ///< the same
  Note notes_[kMaxNoted];
  std::size_t noted_;
  std::uint64_t lines_;    ///< not yet written
  std::size_t unwritten_;  ///< their bytes
  char records_[kEventSize + kRecordSize];
};

}  // namespace kshim::shim
