// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/report/record_parser.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string_view>
#include <utility>

#include "kshim/base/hash.h"
#include "kshim/report/schema.h"

namespace kshim::analysis {
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
constexpr std::uint64_t kLargestPid = std::uint64_t{1} << 22;
// PyTorch's largest library has 100,000.
constexpr std::uint64_t kMostKernels = std::uint64_t{1} << 24;

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

// What the schema and the record in memory have in common, by name.
template <RecordType kType, class T>
T filled(const Fields& from, std::uint32_t line) {
  T out;
  out.line = line;
#define KSHIM_RECORD(type, meaning)
#define KSHIM_FIELD(record, field, kind, required, meaning)             \
  if constexpr (kType == RecordType::record && requires { out.field; }) \
    from.get(Field::record##_##field, out.field);
#include "kshim/report/schema.def"
#undef KSHIM_RECORD
#undef KSHIM_FIELD
  return out;
}

}  // namespace

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
  if (report_.end && *type != RecordType::package) ++after_end_;  // those `kshim run` adds
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

std::string RecordParser::process(const Fields& from, std::uint32_t line) {
  if (report_.process.line != 0) return "a second `process` record, ignored";
  ProcessRecord& out = report_.process = filled<RecordType::process, ProcessRecord>(from, line);
  report_.kept += weight_of<RecordType::process>(out);
  if (out.pid <= kLargestPid && out.ppid <= kLargestPid) return {};
  if (out.pid > kLargestPid) out.pid = 0;
  if (out.ppid > kLargestPid) out.ppid = 0;
  return "`process`: a process id that no process can have, taken as not known";
}

std::string RecordParser::driver(const Fields& from, std::uint32_t line) {
  auto out = filled<RecordType::driver, DriverRecord>(from, line);
  if (!report_.driver) {
    report_.kept += weight_of<RecordType::driver>(out);
    report_.driver = std::move(out);
    return {};
  }
  const DriverRecord& known = *report_.driver;
  if (known.cuda_version == out.cuda_version && known.kernel_module == out.kernel_module) return {};
  return fmt::format("a second `driver` record, for CUDA {} and not {}, ignored", out.cuda_version,
                     known.cuda_version);
}

std::string RecordParser::device(const Fields& from, std::uint32_t line) {
  std::optional<unsigned> ordinal;
  from.get(Field::device_ordinal, ordinal);
  if (!ordinal) return "`device` without `ordinal`, ignored";
  if (full(RecordType::device)) return {};
  auto out = filled<RecordType::device, DeviceRecord>(from, line);
  const auto known = std::find_if(report_.devices.begin(), report_.devices.end(),
                                  [&](const DeviceRecord& row) { return row.ordinal == out.ordinal; });
  if (known == report_.devices.end()) {
    keep<RecordType::device>(report_.devices, std::move(out));
    return {};
  }
  if (known->compute_capability == out.compute_capability && known->uuid == out.uuid) return {};
  return fmt::format("GPU {} is of compute capability {} here and {} in line {}: the first counts",
                     out.ordinal, out.compute_capability, known->compute_capability, known->line);
}

std::string RecordParser::object(const Fields& from, std::uint32_t line) {
  const auto id = from.number(Field::object_id);
  if (!id) return "`object` without `id`, ignored";
  if (objects_.count(*id) != 0) return fmt::format("`object` {} for the second time, ignored", *id);
  if (full(RecordType::object)) return {};
  if (keep<RecordType::object>(report_.objects, filled<RecordType::object, ObjectRecord>(from, line)))
    objects_.insert(*id);
  return {};
}

std::string RecordParser::module(const Fields& from, std::uint32_t line) {
  const auto id = from.number(Field::module_id);
  if (!id) return "`module` without `id`, ignored";
  if (modules_.count(*id) != 0) return fmt::format("`module` {} for the second time, ignored", *id);
  if (full(RecordType::module)) return {};
  auto out = filled<RecordType::module, ModuleRecord>(from, line);
  constexpr double kLongest = 1e9;  // eleven days
  std::string odd;
  if (out.ms > kLongest) {
    out.ms = 0;
    odd = "`module`: a load that took more than a week, its time ignored";
  }
  if (keep<RecordType::module>(report_.modules, std::move(out))) modules_.insert(*id);
  return odd;
}

std::string RecordParser::failure(const Fields& from, std::uint32_t line) {
  const auto id = from.number(Field::failure_id);
  if (!id) return "`failure` without `id`, ignored";
  if (failures_.count(*id) != 0) return fmt::format("`failure` {} for the second time, ignored", *id);
  if (full(RecordType::failure)) return {};
  if (keep<RecordType::failure>(report_.failures, filled<RecordType::failure, FailureRecord>(from, line)))
    failures_.emplace(*id, report_.failures.size() - 1);
  return {};
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
  if (full(RecordType::read)) return {};
  keep<RecordType::read>(report_.reads, filled<RecordType::read, ReadRecord>(from, line));
  return {};
}

std::string RecordParser::gap(const Fields& from, std::uint32_t line) {
  if (full(RecordType::gap)) return {};
  auto out = filled<RecordType::gap, GapRecord>(from, line);
  const bool odd = out.total.value_or(0) > kMostKernels;
  if (odd) out.total.reset();
  keep<RecordType::gap>(report_.gaps, std::move(out));
  return odd ? "`gap`: more kernels than a file has, their number ignored" : "";
}

std::string RecordParser::library(const Fields& from, std::uint32_t line) {
  if (full(RecordType::library)) return {};
  keep<RecordType::library>(report_.libraries, filled<RecordType::library, LibraryRecord>(from, line));
  return {};
}

std::string RecordParser::bypass(const Fields& from, std::uint32_t line) {
  if (full(RecordType::bypass)) return {};
  keep<RecordType::bypass>(report_.bypasses, filled<RecordType::bypass, BypassRecord>(from, line));
  return {};
}

std::string RecordParser::package(const Fields& from, std::uint32_t line) {
  const auto id = from.number(Field::package_object);
  if (!id) return "`package` without `object`, ignored";
  if (full(RecordType::package)) return {};
  keep<RecordType::package>(report_.packages, filled<RecordType::package, PackageRecord>(from, line));
  return {};
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
  if (report_.compiler) return "a second `compiler` record, ignored";
  report_.compiler = filled<RecordType::compiler, CompilerRecord>(from, line);
  report_.kept += weight_of<RecordType::compiler>(*report_.compiler);
  return {};
}

std::string RecordParser::child(const Fields& from, std::uint32_t line) {
  if (full(RecordType::child)) return {};
  keep<RecordType::child>(report_.children, filled<RecordType::child, ChildRecord>(from, line));
  return {};
}

std::string RecordParser::end(const Fields& from, std::uint32_t line) {
  if (report_.end) return "a second `end` record, ignored";
  report_.end = filled<RecordType::end, EndRecord>(from, line);
  return {};
}

}  // namespace kshim::analysis
