// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/report/record_parser.h"

#include "analyzer/core/text.h"
#include "analyzer/data/knowledge.h"
#include "kshim/base/hash.h"
#include "kshim/image/compute_capability.h"
#include "kshim/report/schema.h"

namespace kshim::input {
namespace {

using report::Field;
using report::RecordType;
using simdjson::SUCCESS;

std::optional<RecordType> type_of(std::string_view name) {
  for (std::size_t i = 0; i < std::size(report::kRecords); ++i) {
    if (report::kRecords[i].type == name) return static_cast<RecordType>(i);
  }
  return std::nullopt;
}

// The largest that Linux hands out (PID_MAX_LIMIT).
constexpr std::uint64_t kMaxPidBytes = std::uint64_t{1} << 22;
// PyTorch's largest library has 100,000.
constexpr std::uint64_t kMaxTold = std::uint64_t{1} << 24;

/// Of the caller, whose report it is.
std::string own_home() {
  const char* const home = std::getenv("HOME");
  return home != nullptr && home[0] == '/' && home[1] != 0 ? home : "";
}

std::uint64_t key_of(const CoverageRecord& record) {
  const std::uint64_t key[] = {record.object.value_or(~0ULL), record.module.value_or(~0ULL),
                               content_hash(bytes_of(std::string_view(record.kernel)))};
  return content_hash(std::as_bytes(std::span(key)));
}

bool same_kernel(const CoverageRecord& a, const CoverageRecord& b) {
  return a.kernel == b.kernel && a.object == b.object && a.module == b.module;
}

template <RecordType kType, class T>
T filled(const Fields& from, std::uint32_t line) {
  T out;
  out.line = line;
#define KSHIM_RECORD(type, meaning)
#define KSHIM_FIELD(record, field, kind, required, meaning) \
  if constexpr (kType == RecordType::record) from.get(Field::record##_##field, out.field);
#include "kshim/report/schema.def"
#undef KSHIM_RECORD
#undef KSHIM_FIELD
  return out;
}

/// Records that share one note; the note names the first.
class ReportProblem {
 public:
  explicit ReportProblem(std::string_view how) : how_(how) {}
  template <class... Arguments>
  void add(std::uint32_t line, fmt::format_string<const Arguments&...> text, const Arguments&... arguments) {
    if (count_++ != 0) return;
    line_ = line;
    text_ = fmt::format(text, arguments...);
  }
  void note(Report& report) const {
    if (count_ == 0) return;
    const std::string more = count_ > 1 ? fmt::format(" ({} more like this)", count_ - 1) : "";
    report.notes.push_back({line_, fmt::format("{}, {}{}", text_, how_, more)});
  }

 private:
  std::string_view how_;
  std::uint64_t count_ = 0;
  std::uint32_t line_ = 0;
  std::string text_;
};

class Filler {
 public:
  Filler(Report& report, std::size_t room) : report_(report), room_(room) {
    for (const FailureRecord& row : report.failures) by_id_.emplace(row.id, &row);
  }

  /// `frames`, `of`: members of FailureRecord.
  void fill(std::string_view what, auto frames, auto of) {
    for (FailureRecord& row : report_.failures) {
      if (!(row.*of)) continue;
      if (!(row.*frames).empty()) {
        add(both_, row, what, *(row.*of));
        continue;
      }
      const auto named = by_id_.find(*(row.*of));
      if (named == by_id_.end()) {
        add(nowhere_, row, what, *(row.*of));
      } else if ((named->second->*of) || (named->second->*frames).empty()) {
        add(without_, row, what, *(row.*of));
      } else if (const std::size_t weight = heap_of(named->second->*frames); weight > room_ - taken_) {
        add(too_much_, row, what, *(row.*of));
      } else {
        if (named->second->line > row.line) add(later_, row, what, *(row.*of));
        row.*frames = named->second->*frames;
        taken_ += weight;
      }
    }
  }

  std::size_t finish() {
    for (const ReportProblem* oddity : {&nowhere_, &without_, &too_much_, &later_, &both_})
      oddity->note(report_);
    return taken_;
  }

 private:
  static void add(ReportProblem& oddity, const FailureRecord& row, std::string_view frames,
                  std::uint64_t of) {
    oddity.add(row.line, "`failure` {} has the {} frames of failure {}", row.id, frames, of);
  }

  Report& report_;
  std::size_t room_;
  std::size_t taken_ = 0;
  std::unordered_map<std::uint64_t, const FailureRecord*> by_id_;
  ReportProblem nowhere_{"which is not there: its stack is not known"};
  ReportProblem without_{"which has none itself: its stack is not known"};
  ReportProblem too_much_{"and there is no room for so many: its stack is left out"};
  ReportProblem later_{"which comes later: the lines are not in their order"};
  ReportProblem both_{"and frames of its own: those count"};
};

/// References of one kind of record to another: how many lead nowhere, and how many to what comes later.
class References {
 public:
  References(Report& report, std::string_view what) : report_(report), what_(what) {}
  void add(std::uint64_t id, std::uint32_t line) { lines_.emplace(id, line); }
  void check(std::optional<std::uint64_t> id, const Record& from, std::string_view who) {
    if (!id) return;
    const auto at = lines_.find(*id);
    if (at != lines_.end() && at->second <= from.line) return;
    (at == lines_.end() ? nowhere_ : later_).add(from.line, "`{}` refers to {} {}", who, what_, *id);
  }
  void note(bool whole) {
    if (whole) nowhere_.note(report_);
    later_.note(report_);
  }

 private:
  Report& report_;
  std::string_view what_;
  std::unordered_map<std::uint64_t, std::uint32_t> lines_;
  ReportProblem nowhere_{"which is not there"};
  ReportProblem later_{"which comes later: the lines are not in their order"};
};

void check_references(Report& report, Whole whole) {
  References objects(report, "object");
  References modules(report, "module");
  References devices(report, "GPU");
  for (const ObjectRecord& row : report.objects) objects.add(row.id, row.line);
  for (const ModuleRecord& row : report.modules) modules.add(row.id, row.line);
  for (const DeviceRecord& row : report.devices) devices.add(row.ordinal, row.line);
  const auto check = [&](const auto& rows, std::string_view who) {
    for (const auto& row : rows) {
      objects.check(row.object, row, who);
      if constexpr (requires { row.module; }) modules.check(row.module, row, who);
      bool has_device = true;
      // Asking for a GPU that is not there is a failure of its own.
      if constexpr (requires { row.stage; }) has_device = row.stage != "init" && row.stage != "other";
      if constexpr (requires { row.device; })
        if (has_device) devices.check(row.device, row, who);
    }
  };
  check(report.modules, "module");
  check(report.failures, "failure");
  check(report.reads, "read");
  check(report.gaps, "gap");
  check(report.packages, "package");
  check(report.coverage, "coverage");
  objects.note(whole.objects);
  modules.note(whole.modules);
  devices.note(whole.devices);
}

// What the tables do not know may be newer than this kshim; it is judged by its number all the same.
void check_devices(Report& report) {
  for (const DeviceRecord& row : report.devices) {
    const auto arch = image::parse_arch(row.compute_capability);
    if (!arch || arch->suffix != image::Suffix::none) {
      report.notes.push_back({row.line, fmt::format("GPU {}: `{}` is no compute capability", row.ordinal,
                                                    row.compute_capability.substr(0, 40))});
    } else if (image::find_compute_capability(arch->cc) == nullptr) {
      report.notes.push_back(
          {row.line,
           fmt::format(
               "GPU {}: this kshim knows no GPU of compute capability {}, and judges it by the number",
               row.ordinal, name(arch->cc))});
    }
  }
}

void check_driver(Report& report) {
  if (!report.driver || report.driver->cuda_version.empty()) return;
  if (const auto cuda = image::parse_version(report.driver->cuda_version)) {
    if (std::string said = data::newer_cuda_than_known(*cuda); !said.empty())
      report.notes.push_back({report.driver->line, "the driver: " + said});
    return;
  }
  report.notes.push_back({report.driver->line, fmt::format("`{}` is no CUDA version of a driver",
                                                           report.driver->cuda_version.substr(0, 40))});
}

// Of loads that failed, equal ones have one record, and of those that succeed the first 4096 have one
// (shim/track/modules.cpp): with neither, as many records as loads.
std::uint64_t loads_missing(const Report& report) {
  constexpr std::size_t kMaxWritten = 4096;
  const bool failed =
      std::ranges::any_of(report.modules, [](const ModuleRecord& row) { return row.result != 0; });
  if (failed || report.modules.size() >= kMaxWritten || report.modules.size() >= report.end->modules)
    return 0;
  return report.end->modules - report.modules.size();
}

// Fewer failures or loads than the end counts, with nothing dropped: lines were damaged or taken out. Lines
// that could not be read have a note of their own.
void check_end(Report& report, Whole whole) {
  if (!report.end || report.end->dropped != 0) return;
  const auto check = [&](bool all_kept, std::uint64_t missing, std::string_view what, std::uint64_t counted,
                         std::size_t there) {
    if (!all_kept || missing == 0) return;
    if (report.missing == 0)
      report.notes.push_back(
          {report.end->line, fmt::format("it counts {} {}, {} are there", counted, what, there)});
    report.missing = std::max(report.missing, missing);
  };
  const std::uint64_t failures = report.failures.size();
  check(whole.modules, loads_missing(report), "loads", report.end->modules, report.modules.size());
  check(whole.failures, report.end->failures - std::min(failures, report.end->failures), "failures",
        report.end->failures, report.failures.size());
}

}  // namespace

RecordLimit limit_of(report::RecordType type) {
  struct Row {
    RecordType type;
    std::size_t records, mebibytes;
  };
  static constexpr Row kRows[] = {
      {RecordType::device, 1024, 2},   {RecordType::object, 16384, 16},
      {RecordType::module, 65536, 32}, {RecordType::failure, 4096, 32},
      {RecordType::read, 4096, 16},    {RecordType::gap, 65536, 32},
      {RecordType::library, 4096, 8},  {RecordType::bypass, 256, 2},
      {RecordType::package, 16384, 8}, {RecordType::coverage, std::size_t{1} << 18, 80}};
  // process, driver, compiler, exit and end come once; repeats are counted with their failures.
  static_assert(std::size(kRows) + 6 == std::size(report::kRecords));
  static constexpr auto kLimits = [] {
    std::array<RecordLimit, std::size(report::kRecords)> out;
    out.fill({1, std::size_t{4} << 20});
    for (const Row& row : kRows) out[static_cast<std::size_t>(row.type)] = {row.records, row.mebibytes << 20};
    return out;
  }();
  return kLimits[static_cast<std::size_t>(type)];
}

std::size_t fill_same_stacks(Report& report, std::size_t room) {
  Filler filler(report, room);
  filler.fill("native", &FailureRecord::native, &FailureRecord::native_of);
  filler.fill("Python", &FailureRecord::python, &FailureRecord::python_of);
  filler.fill("main thread's Python", &FailureRecord::python_main, &FailureRecord::python_main_of);
  return filler.finish();
}

std::string RecordParser::parse(simdjson::dom::object from, std::uint32_t line) {
  std::string_view name;
  if (from["type"].get(name) != SUCCESS) return "no `type`, ignored";
  const auto type = type_of(name);
  ++records_;
  if (!type) return {};
  using Parse = std::string (RecordParser::*)(const Fields&, std::uint32_t);
  static constexpr Parse kParse[] = {
#define KSHIM_RECORD(type, meaning) &RecordParser::type,
#define KSHIM_FIELD(record, field, kind, required, meaning)
#include "kshim/report/schema.def"
#undef KSHIM_RECORD
#undef KSHIM_FIELD
  };
  Fields fields(*type, from);
  bool hidden = false;
  if (*type == RecordType::process) fields.get(Field::process_hidden, hidden);
  if (hidden && expands_home_) home_ = own_home();
  fields.set_home(home_);
  count(fields);
  const bool added = *type == RecordType::package || *type == RecordType::exit;  // by `kshim run`
  if (report_.end && !added) ++after_end_;
  std::string what = (this->*kParse[static_cast<std::size_t>(*type)])(fields, line);
  const std::string odd = fields.odd();
  if (what.empty()) return odd;
  return odd.empty() ? what : fmt::format("{} ({})", what, odd);
}

bool RecordParser::full(RecordType type) {
  Kept& kept = this->kept(type);
  const RecordLimit limit = limit_of(type);
  if (kept.records < limit.records && kept.bytes < limit.bytes) return false;
  ++kept.left_out;
  return true;
}

template <RecordType kType, class T>
bool RecordParser::keep(std::vector<T>& list, T&& record) {
  Kept& kept = this->kept(kType);
  const std::size_t weight = weight_of<kType>(record);
  if (kept.bytes + weight > limit_of(kType).bytes) {
    ++kept.left_out;
    return false;
  }
  ++kept.records;
  kept.bytes += weight;
  report_.kept += weight;
  list.push_back(std::move(record));
  return true;
}

template <RecordType kType, class T>
std::string RecordParser::add(std::vector<T>& list, const Fields& from, std::uint32_t line) {
  if (!full(kType)) keep<kType>(list, filled<kType, T>(from, line));
  return {};
}

template <RecordType kType, class T>
std::string RecordParser::set(std::optional<T>& to, const Fields& from, std::uint32_t line) {
  if (to) return fmt::format("a second `{}` record, ignored", report::name_of(kType));
  report_.kept += weight_of<kType>(to.emplace(filled<kType, T>(from, line)));
  return {};
}

std::string RecordParser::process(const Fields& from, std::uint32_t line) {
  if (report_.process.line != 0) return "a second `process` record, ignored";
  ProcessRecord& out = report_.process = filled<RecordType::process, ProcessRecord>(from, line);
  report_.kept += weight_of<RecordType::process>(out);
  if (out.pid <= kMaxPidBytes && out.ppid <= kMaxPidBytes) return {};
  if (out.pid > kMaxPidBytes) out.pid = 0;
  if (out.ppid > kMaxPidBytes) out.ppid = 0;
  return "`process`: a process id that no process can have, taken as not known";
}

std::string RecordParser::driver(const Fields& from, std::uint32_t line) {
  if (!report_.driver) return set<RecordType::driver>(report_.driver, from, line);
  const DriverRecord& known = *report_.driver;
  const auto out = filled<RecordType::driver, DriverRecord>(from, line);
  if (known.cuda_version == out.cuda_version && known.kernel_module == out.kernel_module) return {};
  return fmt::format("a second `driver` record, for CUDA {} and not {}, ignored", out.cuda_version,
                     known.cuda_version);
}

std::string RecordParser::device(const Fields& from, std::uint32_t line) {
  if (!from.number(Field::device_ordinal)) return "`device` without `ordinal`, ignored";
  if (full(RecordType::device)) return {};
  auto out = filled<RecordType::device, DeviceRecord>(from, line);
  const auto known = std::ranges::find_if(
      report_.devices, [&](const DeviceRecord& row) { return row.ordinal == out.ordinal; });
  if (known == report_.devices.end()) {
    keep<RecordType::device>(report_.devices, std::move(out));
    return {};
  }
  if (known->compute_capability == out.compute_capability && known->uuid == out.uuid) return {};
  return fmt::format("GPU {} is of compute capability {} here and {} in line {}: the first counts",
                     out.ordinal, out.compute_capability, known->compute_capability, known->line);
}

template <RecordType kType, class T>
std::string RecordParser::add_named(Field id_field, Ids& ids, std::vector<T>& list, const Fields& from,
                                    std::uint32_t line) {
  const auto id = from.number(id_field);
  if (!id) return fmt::format("`{}` without `id`, ignored", report::name_of(kType));
  if (ids.contains(*id))
    return fmt::format("`{}` {} for the second time, ignored", report::name_of(kType), *id);
  const std::size_t before = list.size();
  add<kType>(list, from, line);
  if (list.size() != before) ids.emplace(*id, before);
  return {};
}

std::string RecordParser::object(const Fields& from, std::uint32_t line) {
  return add_named<RecordType::object>(Field::object_id, objects_, report_.objects, from, line);
}

std::string RecordParser::module(const Fields& from, std::uint32_t line) {
  constexpr double kMaxLength = 1e9;  // eleven days
  const std::size_t before = report_.modules.size();
  std::string odd = add_named<RecordType::module>(Field::module_id, modules_, report_.modules, from, line);
  if (report_.modules.size() == before || report_.modules.back().ms <= kMaxLength) return odd;
  report_.modules.back().ms = 0;
  return "`module`: a load that took more than a week, its time ignored";
}

std::string RecordParser::failure(const Fields& from, std::uint32_t line) {
  return add_named<RecordType::failure>(Field::failure_id, failures_, report_.failures, from, line);
}

std::string RecordParser::repeat(const Fields& from, std::uint32_t) {
  const auto id = from.number(Field::repeat_id);
  const auto times = from.number(Field::repeat_count);
  if (!id || !times) return "`repeat` without `id` and `count`, ignored";
  const auto at = failures_.find(*id);
  if (at == failures_.end())
    return left_out(RecordType::failure) != 0 ? "" : "`repeat` of a failure that is not there, ignored";
  std::uint64_t& known = report_.failures[at->second].count;
  known = std::max(known, *times);
  return {};
}

std::string RecordParser::read(const Fields& from, std::uint32_t line) {
  const auto failed = from.number(Field::read_failure);
  if (!failed) return "`read` without `failure`, ignored";
  if (failures_.count(*failed) == 0)
    return left_out(RecordType::failure) != 0 ? "" : "`read` of a failure that is not there, ignored";
  return add<RecordType::read>(report_.reads, from, line);
}

std::string RecordParser::gap(const Fields& from, std::uint32_t line) {
  const std::size_t before = report_.gaps.size();
  add<RecordType::gap>(report_.gaps, from, line);
  if (report_.gaps.size() == before) return {};
  std::optional<std::uint64_t>& total = report_.gaps.back().total;
  if (total.value_or(0) <= kMaxTold) return {};
  total.reset();
  return "`gap`: more kernels than a file has, their number ignored";
}

std::string RecordParser::library(const Fields& from, std::uint32_t line) {
  return add<RecordType::library>(report_.libraries, from, line);
}

std::string RecordParser::bypass(const Fields& from, std::uint32_t line) {
  return add<RecordType::bypass>(report_.bypasses, from, line);
}

std::string RecordParser::package(const Fields& from, std::uint32_t line) {
  if (!from.number(Field::package_object)) return "`package` without `object`, ignored";
  return add<RecordType::package>(report_.packages, from, line);
}

std::string RecordParser::exit(const Fields& from, std::uint32_t line) {
  return set<RecordType::exit>(report_.exit, from, line);
}

std::string RecordParser::coverage(const Fields& from, std::uint32_t line) {
  auto out = filled<RecordType::coverage, CoverageRecord>(from, line);
  if (out.kernel.empty()) return "`coverage` without `kernel`, ignored";
  out.launches = std::max<std::uint64_t>(out.launches, 1);
  const std::uint64_t key = key_of(out);
  const auto at = coverage_.find(key);
  if (at != coverage_.end() && same_kernel(report_.coverage[at->second], out)) {
    std::uint64_t& known = report_.coverage[at->second].launches;
    known = std::max(known, out.launches);  // the last line has the sum
    return {};
  }
  if (full(RecordType::coverage)) return {};
  if (keep<RecordType::coverage>(report_.coverage, std::move(out)))
    coverage_.insert_or_assign(key, report_.coverage.size() - 1);
  return {};
}

std::string RecordParser::compiler(const Fields& from, std::uint32_t line) {
  return set<RecordType::compiler>(report_.compiler, from, line);
}

std::string RecordParser::end(const Fields& from, std::uint32_t line) {
  return set<RecordType::end>(report_.end, from, line);
}

void RecordParser::note(std::string text, std::uint32_t line) {
  report_.notes.push_back({line, std::move(text)});
}

void RecordParser::count(const Fields& from) {
  const auto seq = from.seq();
  if (!seq) return;
  unordered_ = unordered_ || (seq_ && *seq <= *seq_);
  seq_ = std::max(*seq, seq_.value_or(0));
}

void RecordParser::note_left_out() {
  for (const report::RecordRow& row : report::kRecords) {
    const Kept& kept = this->kept(static_cast<RecordType>(&row - report::kRecords));
    if (kept.left_out == 0) continue;
    note(fmt::format("{} `{}` records are judged, {} more are left out: so many are in no report of a shim",
                     kept.records, row.type, kept.left_out));
  }
}

// Numbers run from 0 without gaps but where a record could not be written, which `end` counts.
void RecordParser::note_missing(std::uint64_t skipped) {
  if (unordered_)
    note("the records are not in the order in which they were written, or some are there twice");
  const std::uint64_t dropped = report_.end ? report_.end->dropped : 0;
  if (dropped != 0)
    note(fmt::format("{} could not be written, as the shim says at the end: there was no space left, or "
                     "there were more than it keeps",
                     dropped == 1 ? std::string("a record") : fmt::format("{} records", dropped)),
         report_.end->line);
  if (!seq_ || unordered_ || *seq_ < records_ + skipped) return;
  const std::uint64_t missing = *seq_ - records_ - skipped + 1;
  if (missing <= dropped) return;
  report_.missing += missing - dropped;
  note(fmt::format("{} that the shim wrote {} missing, as the numbers of the others tell",
                   missing == 1 ? std::string("a record") : fmt::format("{} records", missing),
                   missing == 1 ? "is" : "are"));
}

void RecordParser::finish(std::uint64_t skipped) {
  const std::size_t used = kept(RecordType::failure).bytes;
  report_.kept += fill_same_stacks(report_, limit_of(RecordType::failure).bytes - used);
  note_left_out();
  note_missing(skipped);
  if (after_end_ != 0 && report_.end)
    note(fmt::format(
             "{} after it: of threads that outlived the end, or lines were moved",
             after_end_ == 1 ? std::string("a record stands") : fmt::format("{} records stand", after_end_)),
         report_.end->line);
  check_report(report_, {.objects = left_out(RecordType::object) == 0,
                         .modules = left_out(RecordType::module) == 0,
                         .devices = left_out(RecordType::device) == 0,
                         .failures = left_out(RecordType::failure) == 0});
}

void check_report(Report& report, Whole whole) {
  check_references(report, whole);
  check_devices(report);
  check_driver(report);
  check_end(report, whole);
}

}  // namespace kshim::input
