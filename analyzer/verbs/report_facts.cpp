// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/report_facts.h"

#include <cmath>

#include "analyzer/input/report/report_index.h"

namespace kshim::verbs {
using input::ModuleRecord;
using input::Report;

namespace {

/// What the report says of its job; earlier shims wrote the variables of SLURM alone.
std::string first_set(const input::ProcessRecord& process, const char* key, const char* variable) {
  if (const auto row = process.job.find(key); row != process.job.end()) return row->second;
  const auto row = process.env.find(variable);
  return row != process.env.end() ? row->second : std::string();
}

std::vector<input::ImageEntry> entries_of(const device_code::ObjectFile& file) {
  std::vector<input::ImageEntry> out;
  for (const device_code::ImageCount& image : file.image_counts()) {
    const image::Candidate& of = image.candidate;
    out.push_back(
        {std::string(image::to_name(of.kind)), std::string(image::to_name(of.kind, of.arch).view()),
         of.kind == image::ImageKind::ptx ? std::string(image::to_name(of.isa).view()) : std::string(),
         image.count, image.bytes});
  }
  return out;
}

class Reader {
 public:
  Reader(const Report& report, const Analysis& analysis, input::ObjectFiles& files, ReportFacts& out)
      : report_(report), analysis_(analysis), index_(report), files_(files), out_(out) {}

  void read() {
    for (const input::ObjectRecord& object : report_.objects) add(object);
    add_loads();
    for (std::size_t number = 0; number < analysis_.findings.size(); ++number)
      for (const core::ReportLine& failure : analysis_.findings[number].failures)
        explained_.emplace(failure.line, number);
    for (const input::FailureRecord& failure : report_.failures) add(failure);
    for (const input::CoverageRecord& kernel : report_.coverage) {
      const ModuleRecord* module = index_.module(kernel.module);
      out_.kernels.push_back({kernel.kernel, place(kernel.object),
                              module != nullptr ? module->content_hash : std::string(), kernel.launches});
    }
  }

 private:
  std::optional<std::size_t> place(std::optional<std::uint64_t> id) const {
    const input::ObjectRecord* object = index_.object(id);
    if (object == nullptr) return std::nullopt;
    return static_cast<std::size_t>(object - report_.objects.data());
  }

  void add(const input::ObjectRecord& object) {
    ReportedFile file{object.path, object.build_id, {}, object.images};
    if (const device_code::ObjectFile* found = file.images ? nullptr : files_.find(object); found != nullptr)
      file.images = entries_of(*found);
    if (const input::PackageRecord* package = index_.package(object.id))
      file.package = {package->name, package->version, package->manager};
    else if (const auto found = files_.package(object))
      file.package = {found->name, found->version, found->manager};
    out_.files.push_back(std::move(file));
  }

  void add_loads() {
    for (const ModuleRecord& module : report_.modules) {
      const std::size_t number = load_of(module);
      out_.load_of.push_back(number);
      ReportedLoads& load = out_.loads[number];
      const bool first = load.count++ == 0;
      if (first) load.device = module.device, load.selected = module.selected;
      if (load.device != module.device) load.device.reset();
      if (load.selected != module.selected) load.selected.clear();
      load.microseconds += microseconds(module.ms);
    }
  }

  std::size_t load_of(const ModuleRecord& module) {
    ReportedLoads wanted;
    wanted.file = place(module.object);
    wanted.result = module.result;
    wanted.jit = module.jit;
    if (!wanted.file) wanted.content_hash = module.content_hash;
    const auto key = std::tuple(wanted.file, wanted.content_hash, wanted.result, wanted.jit);
    const auto [at, fresh] = by_key_.emplace(key, out_.loads.size());
    if (fresh) out_.loads.push_back(std::move(wanted));
    return at->second;
  }

  void add(const input::FailureRecord& failure) {
    const ModuleRecord* module = index_.module(failure.module);
    const input::DeviceRecord* device = index_.device(failure.device);
    const auto finding = explained_.find(failure.line);
    const input::Layer layer = failure.layers.empty() ? input::Layer() : failure.layers.front();
    const input::PythonFrame frame = failure.python.empty() ? input::PythonFrame() : failure.python.front();
    out_.failures.push_back(
        {.id = failure.id,
         .finding = finding == explained_.end() ? std::nullopt : std::optional(finding->second),
         .stage = failure.stage,
         .code = failure.layers.empty() ? std::nullopt : std::optional(layer.code),
         .name = layer.name,
         .kernel = failure.kernel,
         .file = place(failure.object      ? failure.object
                       : module != nullptr ? module->object
                                           : std::nullopt),
         .compute_capability = device != nullptr ? device->compute_capability : std::string(),
         .python_file = frame.file,
         .python_line = failure.python.empty() ? std::nullopt : std::optional(frame.line),
         .count = failure.count});
  }

  const Report& report_;
  const Analysis& analysis_;
  const input::ReportIndex index_;
  input::ObjectFiles& files_;
  ReportFacts& out_;
  std::map<std::uint64_t, std::size_t> explained_;  ///< lines of failures
  std::map<std::tuple<std::optional<std::size_t>, std::string, std::uint64_t, bool>, std::size_t> by_key_;
};

}  // namespace

std::uint64_t microseconds(double ms) {
  constexpr double kMost = 1e15;
  return ms > 0 ? static_cast<std::uint64_t>(std::llround(std::min(ms * 1000, kMost))) : 0;
}

void identify(const Report& report, const ReportFile& file, ReportFacts& out) {
  const input::ProcessRecord& process = report.process;
  out.time = process.time;
  out.start = process.start;
  out.ppid = process.ppid;
  out.run = process.run;
  out.uid = process.uid;
  out.job = first_set(process, "id", "SLURM_JOB_ID");
  out.account = first_set(process, "account", "SLURM_JOB_ACCOUNT");
  out.queue = first_set(process, "queue", "SLURM_JOB_PARTITION");
  out.owner = file.owner;
  out.changed = file.changed_ns / 1'000'000'000;
  out.arrived = file.arrived_s;
}

ReportFacts facts_of(const Report& report, const Analysis& analysis, const ReportFile& file,
                     input::ObjectFiles& files) {
  ReportFacts out;
  identify(report, file, out);
  out.hidden = report.process.hidden;
  out.shim = report.process.shim;
  if (report.driver) {
    out.driver = report.driver->cuda_version;
    out.kernel_module = report.driver->kernel_module;
    out.simulated = report.driver->simulated;
  }
  out.modules = std::max<std::uint64_t>(report.end ? report.end->modules : 0, report.modules.size());
  if (report.compiler) out.compiler_status = report.compiler->status;
  out.foreign = report.foreign;
  Reader(report, analysis, files, out).read();
  out.damage = report.notes;
  if (!files.left_out().empty()) out.damage.push_back({0, "a file that it names " + files.left_out()});
  return out;
}

}  // namespace kshim::verbs
