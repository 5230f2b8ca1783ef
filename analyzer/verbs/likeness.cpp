// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/likeness.h"

#include <algorithm>
#include <string_view>
#include <type_traits>
#include <vector>

#include "analyzer/diagnose/places.h"
#include "kshim/report/writer.h"

namespace kshim::analysis {
namespace {

using report::Field;
using report::RecordType;

// Each value so that none can pass for another: sizes come first.
template <class Number>
requires std::is_arithmetic_v<Number>
void add(Number value, std::string& out) { out.append(reinterpret_cast<const char*>(&value), sizeof(value)); }
void add(const std::string& text, std::string& out) {
  add(text.size(), out);
  out += text;
}
void add(const ImageEntry& row, std::string& out) {
  add(row.kind, out), add(row.arch, out), add(row.isa, out), add(row.count, out), add(row.bytes, out);
}
void add(const Layer& row, std::string& out) {
  add(row.layer, out), add(row.api, out), add(row.code, out), add(row.name, out);
}
void add(const NativeFrame& row, std::string& out) {
  add(row.object, out), add(row.build_id, out), add(row.offset, out), add(row.symbol, out);
}
void add(const PythonFrame& row, std::string& out) {
  add(row.file, out), add(row.line, out), add(row.function, out);
}
template <class T>
void add(const std::vector<T>& rows, std::string& out) {
  add(rows.size(), out);
  for (const T& row : rows) add(row, out);
}
template <class T>
void add(const std::optional<T>& value, std::string& out) {
  add(value.has_value(), out);
  if (value) add(*value, out);
}

/// Of this very process, and no part of what it is judged by.
constexpr bool is_own(Field field) {
  constexpr Field kOwn[] = {Field::process_host,   Field::process_run,  Field::process_pid,
                            Field::process_uid,    Field::process_job,  Field::process_start,
                            Field::process_ppid,   Field::process_rank, Field::process_time,
                            Field::process_sample, Field::process_exe,  Field::process_argv,
                            Field::process_cwd,    Field::process_env,  Field::device_uuid,
                            Field::device_pci,     Field::module_ms};
  return std::find(std::begin(kOwn), std::end(kOwn), field) != std::end(kOwn);
}

template <RecordType kType, class T>
void add_record(const T& record, std::string& out) {
  add(record.line, out);
#define KSHIM_RECORD(type, meaning)
#define KSHIM_FIELD(of, field, kind, required, meaning)                                                \
  if constexpr (kType == RecordType::of && !is_own(Field::of##_##field) && requires { record.field; }) \
    add(record.field, out);
#include "kshim/report/schema.def"
#undef KSHIM_RECORD
#undef KSHIM_FIELD
}
template <RecordType kType, class T>
void add_records(const std::vector<T>& records, std::string& out) {
  add(records.size(), out);
  for (const T& record : records) add_record<kType>(record, out);
}

/// Numbers that a scheduler gives: another one for each process or job.
bool is_number_of_job(std::string_view name, std::string_view value) {
  static constexpr std::string_view kNames[] = {
      "SLURM_JOB_ID", "SLURM_PROCID",         "LSB_JOBID", "PBS_JOBID", "RANK",
      "LOCAL_RANK",   "OMPI_COMM_WORLD_RANK", "PMI_RANK"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames) &&
         value.find('/') == std::string_view::npos;
}

}  // namespace

std::string likeness_of(const Report& report) {
  std::string out;
  if (report.compiler || !report.bypasses.empty() || !report.children.empty()) return out;
  add(report.foreign, out);
  add(report.missing, out);
  add(is_of_this_machine(report), out);  // its caches are looked into
  add(report.process.rank.has_value(), out);
  add_record<RecordType::process>(report.process, out);
  std::vector<std::string> environment;
  for (const auto& [name, value] : report.process.env)
    if (!is_number_of_job(name, value)) environment.insert(environment.end(), {name, value});
  add(environment, out);
  add(report.driver.has_value(), out);
  if (report.driver) add_record<RecordType::driver>(*report.driver, out);
  add_records<RecordType::device>(report.devices, out);
  if (report.devices.size() > 1)
    for (const DeviceRecord& device : report.devices) add(device.uuid, out);  // a fix may name one
  add_records<RecordType::object>(report.objects, out);
  add_records<RecordType::module>(report.modules, out);
  for (const ModuleRecord& module : report.modules)
    if (module.jit == true && module.result == 0) add(module.ms, out);
  add_records<RecordType::failure>(report.failures, out);
  add_records<RecordType::read>(report.reads, out);
  add_records<RecordType::gap>(report.gaps, out);
  add_records<RecordType::library>(report.libraries, out);
  add_records<RecordType::package>(report.packages, out);
  add_records<RecordType::coverage>(report.coverage, out);
  if (report.end) add_record<RecordType::end>(*report.end, out);
  return out;
}

std::string program_likeness_of(const ProcessRecord& process) {
  std::string out;
  add(process.exe, out), add(process.cwd, out), add(process.argv, out);
  return out;
}

}  // namespace kshim::analysis
