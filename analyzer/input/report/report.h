// SPDX-License-Identifier: Apache-2.0
// A report in memory: kshim-report/1 as include/kshim/report/schema.def lists it, with the line each record
// stands on. Optional fields that are absent, null or of a wrong type are empty.
#pragma once
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "kshim/report/writer.h"

namespace kshim::input {

struct ImageEntry {
  std::string kind;
  std::string arch;
  std::string isa;
  std::uint64_t count = 1;
  std::uint64_t bytes = 0;
};
struct Layer {
  std::string layer;
  std::string api;
  int code = 0;
  std::string name;
};
struct NativeFrame {
  std::string object;
  std::string build_id;
  std::uint64_t offset = 0;
  std::string symbol;
};
struct PythonFrame {
  std::string file;
  unsigned line = 0;
  std::string function;
};

/// A process as another one's record names it.
struct ProcessEntry {
  std::uint64_t pid = 0, start = 0;
  std::string exe;
};

struct Record {
  std::uint32_t line = 0;  ///< in the file, from 1
  bool operator==(const Record&) const = default;
};
/// What a field is in memory, by its kind: nothing where a report need not have it, and absence matters.
template <bool kRequired, class T>
using IfThere = std::conditional_t<kRequired, T, std::optional<T>>;
template <report::Kind kKind, bool kRequired>
using FieldOf = std::tuple_element_t<
    static_cast<std::size_t>(kKind),
    std::tuple<std::string, std::string, IfThere<kRequired, std::uint64_t>, double, bool,
               std::vector<std::string>, std::vector<std::string>, std::map<std::string, std::string>,
               IfThere<kRequired, std::vector<ImageEntry>>, std::vector<Layer>, std::vector<NativeFrame>,
               std::vector<PythonFrame>, std::vector<ProcessEntry>>>;
/// The records of schema.def.
template <report::RecordType kType>
struct RecordOf : Record {
#define KSHIM_RECORD(type, meaning)                    \
  }                                                    \
  ;                                                    \
  template <>                                          \
  struct RecordOf<report::RecordType::type> : Record { \
    bool operator==(const RecordOf&) const = default;
#define KSHIM_FIELD(record, field, kind, required, meaning) \
  FieldOf<report::Kind::kind_##kind, (required) != 0> field{};
#include "kshim/report/schema.def"
#undef KSHIM_RECORD
#undef KSHIM_FIELD
};
using ProcessRecord = RecordOf<report::RecordType::process>;
using DriverRecord = RecordOf<report::RecordType::driver>;
using DeviceRecord = RecordOf<report::RecordType::device>;
using ObjectRecord = RecordOf<report::RecordType::object>;
using ModuleRecord = RecordOf<report::RecordType::module>;
using ReadRecord = RecordOf<report::RecordType::read>;
using GapRecord = RecordOf<report::RecordType::gap>;
using LibraryRecord = RecordOf<report::RecordType::library>;
using BypassRecord = RecordOf<report::RecordType::bypass>;
using PackageRecord = RecordOf<report::RecordType::package>;
using ExitRecord = RecordOf<report::RecordType::exit>;
using CoverageRecord = RecordOf<report::RecordType::coverage>;  ///< one however many lines speak of a kernel
using CompilerRecord = RecordOf<report::RecordType::compiler>;
using EndRecord = RecordOf<report::RecordType::end>;
/// Its frames are there where it names another failure for them, too; filled in by the reader
/// (record_parser.h).
struct FailureRecord : RecordOf<report::RecordType::failure> {
  std::uint64_t count = 1;
};
/// Milliseconds that the driver may compile in one process: more is worth a warning.
constexpr double kNoticeableJit = 1000;

/// What was odd about a report: a sentence, and the line that it is about (0: the whole).
struct ReportNote {
  std::uint32_t line = 0;
  std::string text;
};

struct Report {
  std::string path;
  std::uint32_t owner = 0;  ///< of the file: its user id
  bool foreign = false;     ///< the file is of another user (neither the caller nor root), or linked
  bool linked = false;      ///< a link of another user leads to the file
  ProcessRecord process;
  std::optional<DriverRecord> driver;
  std::vector<DeviceRecord> devices;
  std::vector<ObjectRecord> objects;
  std::vector<ModuleRecord> modules;
  std::vector<FailureRecord> failures;
  std::vector<ReadRecord> reads;
  std::vector<GapRecord> gaps;
  std::vector<LibraryRecord> libraries;
  std::vector<BypassRecord> bypasses;
  std::vector<PackageRecord> packages;
  std::vector<CoverageRecord> coverage;
  std::optional<CompilerRecord> compiler;
  std::optional<ExitRecord> exit;
  std::optional<EndRecord> end;
  std::uint64_t missing = 0;      ///< records that its shim wrote and that cannot be read here any more
  std::vector<ReportNote> notes;  ///< what was odd about the file
  std::size_t kept = 0;           ///< bytes of memory that the records take, about
};

}  // namespace kshim::input
