// SPDX-License-Identifier: Apache-2.0
// One JSON object after the other into the records that their `type` names.
#pragma once
#include <simdjson.h>

#include <unordered_map>

#include "analyzer/input/report/fields.h"

namespace kshim::input {

// How much of one report is kept in memory. The shim's own limits (docs/report-format.md) are far below; a
// report of gigabytes, whatever wrote it, is read to its end and kept up to here, and a note says
// what was left out.

/// Records of one type that are kept, and bytes of memory for them.
struct RecordLimit {
  std::size_t records = 0;
  std::size_t bytes = 0;
};
/// Together 232 MiB. The arrays that hold the records may take twice their size while they grow.
RecordLimit limit_of(report::RecordType type);

// What a value takes on the heap, about.
constexpr std::size_t kNode = 48;  ///< of an entry of a map, or what an allocation costs besides its bytes
template <class T>
std::size_t heap_of(const T& /*value*/) {
  return 0;
}
inline std::size_t heap_of(const std::string& text) {
  constexpr std::size_t kInside = 15;  // libstdc++ keeps so much within the object
  return text.size() > kInside ? text.size() + 1 + kNode / 3 : 0;
}
inline std::size_t heap_of(const ImageEntry& image) {
  return heap_of(image.kind) + heap_of(image.arch) + heap_of(image.isa);
}
inline std::size_t heap_of(const Layer& layer) {
  return heap_of(layer.layer) + heap_of(layer.api) + heap_of(layer.name);
}
inline std::size_t heap_of(const NativeFrame& frame) {
  return heap_of(frame.object) + heap_of(frame.build_id) + heap_of(frame.symbol);
}
inline std::size_t heap_of(const PythonFrame& frame) { return heap_of(frame.file) + heap_of(frame.function); }
inline std::size_t heap_of(const ProcessEntry& process) { return heap_of(process.exe); }
inline std::size_t heap_of(const std::map<std::string, std::string>& variables) {
  std::size_t out = 0;
  for (const auto& [name, value] : variables)
    out += 2 * sizeof(std::string) + kNode + heap_of(name) + heap_of(value);
  return out;
}
template <class T>
std::size_t heap_of(const std::vector<T>& items) {
  std::size_t out = items.capacity() * sizeof(T);
  for (const T& item : items) out += heap_of(item);
  return out;
}
template <class T>
std::size_t heap_of(const std::optional<T>& value) {
  return value ? heap_of(*value) : 0;
}

/// The memory that a record takes, about: itself, its entry in an index, and what its fields hold on the
/// heap.
template <report::RecordType kType, class T>
std::size_t weight_of(const T& record) {
  std::size_t out = sizeof(record) + kNode;
#define KSHIM_RECORD(type, meaning)
#define KSHIM_FIELD(of, field, kind, required, meaning) \
  if constexpr (kType == report::RecordType::of) out += heap_of(record.field);
#include "kshim/report/schema.def"
#undef KSHIM_RECORD
#undef KSHIM_FIELD
  return out;
}

class RecordParser {
 public:
  /// `expands_home`: `~` of a private report becomes the caller's home folder.
  RecordParser(Report& report, bool expands_home) : report_(report), expands_home_(expands_home) {}

  /// Adds the record to the report. A type that is not known is ignored: newer shims may write more. The
  /// answer is empty, or says what is odd about the line.
  std::string parse(simdjson::dom::object from, std::uint32_t line);
  /// After the last line: notes on what was left out and on records that contradict each other. `skipped`:
  /// lines that could not be read.
  void finish(std::uint64_t skipped);

 private:
  struct Kept {
    std::size_t records = 0;
    std::size_t bytes = 0;
    std::uint64_t left_out = 0;
  };
#define KSHIM_RECORD(type, meaning) std::string type(const Fields& from, std::uint32_t line);
#define KSHIM_FIELD(record, field, kind, required, meaning)
#include "kshim/report/schema.def"
#undef KSHIM_RECORD
#undef KSHIM_FIELD

  using Ids = std::unordered_map<std::uint64_t, std::size_t>;  ///< index into the list, by id
  /// A record that others refer to by its id.
  template <report::RecordType kType, class T>
  std::string add_named(report::Field id_field, Ids& ids, std::vector<T>& list, const Fields& from,
                        std::uint32_t line);
  /// Where there is room for it.
  template <report::RecordType kType, class T>
  std::string add(std::vector<T>& list, const Fields& from, std::uint32_t line);
  /// A record that is there once.
  template <report::RecordType kType, class T>
  std::string set(std::optional<T>& to, const Fields& from, std::uint32_t line);
  /// False where there is no room for one more; then it is counted as left out.
  bool full(report::RecordType type);
  template <report::RecordType kType, class T>
  bool keep(std::vector<T>& list, T&& record);
  Kept& kept(report::RecordType type) { return kept_[static_cast<std::size_t>(type)]; }
  std::uint64_t left_out(report::RecordType type) { return kept(type).left_out; }
  void note(std::string text, std::uint32_t line = 0);
  void count(const Fields& from);
  void note_left_out();
  void note_missing(std::uint64_t skipped);

  Report& report_;
  bool expands_home_;
  std::string home_;  ///< what `~` in the report stands for
  std::array<Kept, static_cast<std::size_t>(report::RecordType::end) + 1> kept_{};
  Ids objects_, modules_, failures_;
  std::unordered_map<std::uint64_t, std::size_t> coverage_;  ///< by a hash of what tells kernels apart
  std::uint64_t records_ = 0;
  std::uint64_t after_end_ = 0;
  std::optional<std::uint64_t> seq_;  ///< the highest so far
  bool unordered_ = false;
};

// What in a report cannot be as it says: records that refer to nothing, GPUs and drivers that do not exist.

/// Which kinds of records were all kept: only then can one be missing.
struct Whole {
  bool objects = true;
  bool modules = true;
  bool devices = true;
  bool failures = true;
};
/// Adds a note for each kind of contradiction, with the first line of it, and what `end` counts beyond what
/// is there to Report::missing.
void check_report(Report& report, Whole whole);

// Failures that name another one for their frames get a copy of them: what comes after the reader sees
// frames.
/// After the last line. What is named must have the frames itself: so much is in every record of a shim, and
/// no chain or circle is followed. Frames stay empty where that is not so, and where copies would take more
/// than `room` bytes; notes say of how many failures, and why. The answer: bytes of memory taken.
std::size_t fill_same_stacks(Report& report, std::size_t room);

}  // namespace kshim::input
