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
  if (*type == RecordType::process && expands_home_ && fields.truth(Field::process_private).value_or(false))
    home_ = own_home();
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

template <class T>
bool RecordParser::keep(RecordType type, std::vector<T>& list, T&& record) {
  Kept& kept = this->kept(type);
  const std::size_t weight = weight_of(record);
  if (kept.bytes + weight > limit_of(type).bytes) {
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
  ProcessRecord& out = report_.process;
  out.line = line;
  out.shim = from.text(Field::process_shim);
  out.run = from.text(Field::process_run);
  out.host = from.text(Field::process_host);
  out.time = from.text(Field::process_time);
  out.exe = from.text(Field::process_exe);
  out.cwd = from.text(Field::process_cwd);
  out.pid = from.number(Field::process_pid).value_or(0);
  out.start = from.number(Field::process_start).value_or(0);
  out.hidden = from.truth(Field::process_private).value_or(false);
  out.ppid = from.number(Field::process_ppid).value_or(0);
  out.rank = from.small(Field::process_rank);
  out.argv = from.texts(Field::process_argv);
  out.env = from.environment(Field::process_env);
  report_.kept += weight_of(out);
  if (out.pid <= kLargestPid && out.ppid <= kLargestPid) return {};
  if (out.pid > kLargestPid) out.pid = 0;
  if (out.ppid > kLargestPid) out.ppid = 0;
  return "`process`: a process id that no process can have, taken as not known";
}

std::string RecordParser::driver(const Fields& from, std::uint32_t line) {
  DriverRecord out;
  out.line = line;
  out.path = from.text(Field::driver_path);
  out.cuda_version = from.text(Field::driver_cuda_version);
  out.kernel_module = from.text(Field::driver_kernel_module);
  out.simulated = from.truth(Field::driver_simulated).value_or(false);
  if (!report_.driver) {
    report_.kept += weight_of(out);
    report_.driver = std::move(out);
    return {};
  }
  const DriverRecord& known = *report_.driver;
  if (known.cuda_version == out.cuda_version && known.kernel_module == out.kernel_module) return {};
  return fmt::format("a second `driver` record, for CUDA {} and not {}, ignored", out.cuda_version,
                     known.cuda_version);
}

std::string RecordParser::device(const Fields& from, std::uint32_t line) {
  const auto ordinal = from.small(Field::device_ordinal);
  if (!ordinal) return "`device` without `ordinal`, ignored";
  if (full(RecordType::device)) return {};
  DeviceRecord out;
  out.line = line;
  out.ordinal = *ordinal;
  out.name = from.text(Field::device_name);
  out.compute_capability = from.text(Field::device_compute_capability);
  out.uuid = from.text(Field::device_uuid);
  out.pci = from.text(Field::device_pci);
  const auto known = std::find_if(report_.devices.begin(), report_.devices.end(),
                                  [&](const DeviceRecord& row) { return row.ordinal == out.ordinal; });
  if (known == report_.devices.end()) {
    keep(RecordType::device, report_.devices, std::move(out));
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
  ObjectRecord out;
  out.line = line;
  out.id = *id;
  out.path = from.text(Field::object_path);
  out.build_id = from.text(Field::object_build_id);
  out.runtime = from.text(Field::object_runtime);
  out.fatbins = from.number(Field::object_fatbins);
  out.images = from.images(Field::object_images);
  if (keep(RecordType::object, report_.objects, std::move(out))) objects_.insert(*id);
  return {};
}

std::string RecordParser::module(const Fields& from, std::uint32_t line) {
  const auto id = from.number(Field::module_id);
  if (!id) return "`module` without `id`, ignored";
  if (modules_.count(*id) != 0) return fmt::format("`module` {} for the second time, ignored", *id);
  if (full(RecordType::module)) return {};
  ModuleRecord out;
  out.line = line;
  out.id = *id;
  out.object = from.number(Field::module_object);
  out.offset = from.number(Field::module_offset);
  out.size = from.number(Field::module_size);
  out.device = from.small(Field::module_device);
  out.content_hash = from.text(Field::module_content_hash);
  out.api = from.text(Field::module_api);
  out.selected = from.text(Field::module_selected);
  out.toolkit = from.text(Field::module_toolkit);
  out.result = from.code(Field::module_result);
  out.jit = from.truth(Field::module_jit);
  out.ms = from.decimal(Field::module_ms);
  constexpr double kLongest = 1e9;  // eleven days
  std::string odd;
  if (out.ms > kLongest) {
    out.ms = 0;
    odd = "`module`: a load that took more than a week, its time ignored";
  }
  if (keep(RecordType::module, report_.modules, std::move(out))) modules_.insert(*id);
  return odd;
}

std::string RecordParser::failure(const Fields& from, std::uint32_t line) {
  const auto id = from.number(Field::failure_id);
  if (!id) return "`failure` without `id`, ignored";
  if (failures_.count(*id) != 0) return fmt::format("`failure` {} for the second time, ignored", *id);
  if (full(RecordType::failure)) return {};
  FailureRecord out;
  out.line = line;
  out.id = *id;
  out.stage = from.text(Field::failure_stage);
  out.kernel = from.text(Field::failure_kernel);
  out.device = from.small(Field::failure_device);
  out.module = from.number(Field::failure_module);
  out.object = from.number(Field::failure_object);
  out.layers = from.layers(Field::failure_layers);
  out.native = from.native(Field::failure_native);
  out.python = from.python(Field::failure_python);
  out.python_main = from.python(Field::failure_python_main);
  out.native_of = from.number(Field::failure_native_of);
  out.python_of = from.number(Field::failure_python_of);
  out.python_main_of = from.number(Field::failure_python_main_of);
  out.asked = from.text(Field::failure_asked);
  out.compiler = from.text(Field::failure_compiler);
  out.known = from.texts(Field::failure_known);
  if (keep(RecordType::failure, report_.failures, std::move(out)))
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
  ReadRecord out;
  out.line = line;
  out.failure = *failed;
  out.api = from.text(Field::read_api);
  out.code = from.code(Field::read_code);
  out.object = from.number(Field::read_object);
  out.native = from.native(Field::read_native);
  out.python = from.python(Field::read_python);
  keep(RecordType::read, report_.reads, std::move(out));
  return {};
}

std::string RecordParser::gap(const Fields& from, std::uint32_t line) {
  if (full(RecordType::gap)) return {};
  GapRecord out;
  out.line = line;
  out.object = from.number(Field::gap_object);
  out.offset = from.number(Field::gap_offset);
  out.device = from.small(Field::gap_device);
  out.kernels = from.texts(Field::gap_kernels);
  out.have = from.texts(Field::gap_have);
  out.total = from.number(Field::gap_total);
  out.complete = from.truth(Field::gap_complete).value_or(false);
  out.need = from.text(Field::gap_need);
  const bool odd = out.total.value_or(0) > kMostKernels;
  if (odd) out.total.reset();
  keep(RecordType::gap, report_.gaps, std::move(out));
  return odd ? "`gap`: more kernels than a file has, their number ignored" : "";
}

std::string RecordParser::library(const Fields& from, std::uint32_t line) {
  if (full(RecordType::library)) return {};
  LibraryRecord out;
  out.line = line;
  out.soname = from.text(Field::library_soname);
  out.build_id = from.text(Field::library_build_id);
  out.path = from.text(Field::library_path);
  out.version = from.text(Field::library_version);
  keep(RecordType::library, report_.libraries, std::move(out));
  return {};
}

std::string RecordParser::bypass(const Fields& from, std::uint32_t line) {
  if (full(RecordType::bypass)) return {};
  BypassRecord out;
  out.line = line;
  out.path = from.text(Field::bypass_path);
  out.how = from.text(Field::bypass_how);
  out.names = from.texts(Field::bypass_names);
  keep(RecordType::bypass, report_.bypasses, std::move(out));
  return {};
}

std::string RecordParser::package(const Fields& from, std::uint32_t line) {
  const auto id = from.number(Field::package_object);
  if (!id) return "`package` without `object`, ignored";
  if (full(RecordType::package)) return {};
  PackageRecord out;
  out.line = line;
  out.object = *id;
  out.name = from.text(Field::package_name);
  out.version = from.text(Field::package_version);
  out.manager = from.text(Field::package_manager);
  out.build = from.text(Field::package_build);
  out.channel = from.text(Field::package_channel);
  out.environment = from.text(Field::package_environment);
  out.source = from.text(Field::package_source);
  keep(RecordType::package, report_.packages, std::move(out));
  return {};
}

std::string RecordParser::coverage(const Fields& from, std::uint32_t line) {
  CoverageRecord out;
  out.line = line;
  out.kernel = from.text(Field::coverage_kernel);
  if (out.kernel.empty()) return "`coverage` without `kernel`, ignored";
  out.object = from.number(Field::coverage_object);
  out.module = from.number(Field::coverage_module);
  out.launches = from.number(Field::coverage_launches).value_or(1);
  const std::uint64_t key = key_of(out);
  const auto at = coverage_.find(key);
  if (at != coverage_.end() && same_kernel(report_.coverage[at->second], out)) {
    std::uint64_t& known = report_.coverage[at->second].launches;
    known = std::max(known, out.launches);  // the last line has the sum
    return {};
  }
  if (full(RecordType::coverage)) return {};
  if (keep(RecordType::coverage, report_.coverage, std::move(out)))
    coverage_.insert_or_assign(key, report_.coverage.size() - 1);
  return {};
}

std::string RecordParser::end(const Fields& from, std::uint32_t line) {
  if (report_.end) return "a second `end` record, ignored";
  EndRecord out;
  out.line = line;
  out.failures = from.number(Field::end_failures).value_or(0);
  out.modules = from.number(Field::end_modules).value_or(0);
  out.dropped = from.number(Field::end_dropped).value_or(0);
  report_.end = out;
  return {};
}

}  // namespace kshim::analysis
