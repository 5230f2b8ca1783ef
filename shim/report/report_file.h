// SPDX-License-Identifier: Apache-2.0
// The report of this process: one file, one write(2) a record, mode 0600, never over an existing file. Not
// for the launch path. Where no file can be made, one line on stderr says so and records go nowhere.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "kshim/report/writer.h"

namespace kshim::shim {

/// Makes the file and writes the process record, the first time this process calls it; cheap afterwards
/// (no system call). Answers the report's number: 0 when there is no report, another one than before in a
/// fork's child, whose file is its own. Ids of objects and modules belong to one report: who sees a new
/// number announces them anew. Call it on every slow path before writing.
std::uint32_t begin_report() noexcept;
/// The number of this process's report without beginning one; 0 when there is none.
std::uint32_t current_report() noexcept;
/// Where it is, shortened when it lies below the working directory the process started in; empty when there
/// is none.
std::string_view report_path() noexcept;

/// Counters of the end record.
struct EndCounts {
  std::uint64_t failures = 0;
  std::uint64_t modules = 0;
};
/// How a process ends: `normal` through its destructors, `immediate` through _exit, which a signal handler
/// may call.
enum class Ending : std::uint8_t { normal, immediate };
/// `count` is called once, before the end record; it may write records (repeats). For an immediate end it
/// must not enumerate what is mapped: that takes the dynamic linker's lock.
void at_report_end(EndCounts (*count)(Ending) noexcept) noexcept;
/// Writes the end record, once. Does nothing in a fork's or vfork's child that has no report of its own.
void end_report(Ending ending) noexcept;
/// One record that could not be written.
void count_dropped() noexcept;

/// The right to write one record: holds the lock and the buffer. Not reentrant.
class RecordSlot {
 public:
  RecordSlot() noexcept;
  ~RecordSlot();
  RecordSlot(const RecordSlot&) = delete;
  RecordSlot& operator=(const RecordSlot&) = delete;
  explicit operator bool() const noexcept { return held_; }
  std::span<char> storage() const noexcept;
  std::uint64_t seq() const noexcept;
  std::uint64_t time() const noexcept;  ///< nanoseconds since the process record
  bool write(std::string_view line) noexcept;

 private:
  bool held_ = false;
};

/// write_record<RecordType::module>([&](auto& record) { record.template add<Field::module_id>(id) ... });
/// every field of the record must be added or null()ed by `fill`, which must not write records itself. False
/// when it was dropped.
template <report::RecordType kType, class Fill>
bool write_record(Fill&& fill) noexcept {
  RecordSlot slot;
  if (!slot) return false;
  report::Record<kType> record(slot.storage(), slot.seq(), slot.time());
  std::forward<Fill>(fill)(record);
  return slot.write(record.finish());
}

}  // namespace kshim::shim
