// SPDX-License-Identifier: Apache-2.0
#include "analyzer/export/export.h"

#include <fmt/core.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <nlohmann/json.hpp>
#include <system_error>

#include "analyzer/core/text.h"
#include "analyzer/core/user_error.h"
#include "analyzer/export/row.h"
#include "analyzer/export/table_files.h"
#include "analyzer/input/report/report_index.h"
#include "analyzer/input/report/report_reader.h"
#include "analyzer/verbs/analysis.h"
#include "analyzer/verbs/report_files.h"
#include "kshim/base/hash.h"
#include "kshim/files/open_file.h"
#include "kshim/image/arch.h"
#include "kshim/image/compute_capability.h"
#include "kshim/image/select.h"

namespace kshim::exports {
namespace {

namespace fs = std::filesystem;
using analysis::Report;
using C = Column;

constexpr std::size_t kLargestManifest = std::size_t{256} << 20;

struct Input {
  fs::path path;
  std::uint64_t bytes = 0;
  std::int64_t changed_ns = 0;
  std::string id() const { return fmt::format("{}\n{}\n{}", path.string(), bytes, changed_ns); }
};

std::string hash_of(std::string_view text) { return fmt::format("{:016x}", content_hash(bytes_of(text))); }

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string();
}

/// What earlier exports of this host have taken: DIR/manifest/NAME.json lists the inputs of one export.
std::set<std::string> known_inputs(const fs::path& manifests) {
  std::set<std::string> known;
  std::error_code error;
  for (fs::directory_iterator walk(manifests, error), end; !error && walk != end; walk.increment(error)) {
    if (walk->path().extension() != ".json") continue;
    const auto text = files::read_whole(walk->path(), kLargestManifest);
    const nlohmann::json manifest = nlohmann::json::parse(text.value_or(""), nullptr, false);
    if (!manifest.is_object() || manifest.value("host", nlohmann::json()) != host_name()) continue;
    const nlohmann::json inputs = manifest.value("inputs", nlohmann::json::array());
    for (const nlohmann::json& input : inputs)
      if (input.is_string()) known.insert(input.get<std::string>());
  }
  return known;
}

std::string user_name(uid_t uid) {
  static std::unordered_map<uid_t, std::string> names;
  const auto [row, fresh] = names.try_emplace(uid);
  if (fresh) {
    const passwd* entry = ::getpwuid(uid);
    row->second = entry != nullptr ? entry->pw_name : fmt::format("{}", uid);
  }
  return row->second;
}

std::string_view first_set(const std::map<std::string, std::string>& env,
                           std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto row = env.find(name);
    if (row != env.end() && !row->second.empty()) return row->second;
  }
  return {};
}

/// The rows of reports, one report after the other.
class Rows {
 public:
  explicit Rows(TableFiles& out) : out_(out) {}

  void add(const Report& report, const analysis::Analysis& analysis, uid_t owner) {
    const analysis::ProcessRecord& process = report.process;
    id_ = fmt::format("{}.{}.{}.{}", process.host, process.pid, process.start, process.time);
    day_ = process.time.substr(0, 10);
    if (!is_day(day_)) day_ = "unknown";
    const analysis::ReportIndex index(report);
    files_.learn(report);
    process_row(report, analysis, owner);
    for (const analysis::DeviceRecord& device : report.devices) device_row(device);
    for (const analysis::ObjectRecord& object : report.objects) image_rows(object, index);
    load_rows(report, index);
    const std::map<std::uint64_t, std::size_t> explained = finding_rows(report, analysis);
    for (const analysis::FailureRecord& failure : report.failures)
      failure_row(report, index, failure, analysis, explained);
    kernel_rows(report, index);
    for (const analysis::ReportNote& note : report.notes) reject(report.path, note.line, note.text);
  }

  void reject(const std::string& path, std::uint64_t line, std::string_view why) {
    Row row(Table::rejected);
    row.text(C::rejected_row_id, fmt::format("{}:{}", path, line))
        .text(C::rejected_path, path)
        .text(C::rejected_reason, why);
    if (line != 0) row.integer(C::rejected_line, line);
    out_.add(row, today());
  }

 private:
  struct File {
    std::string id, path, build_id, package, version;
  };

  static std::string today() {
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    ::gmtime_r(&now, &utc);
    return fmt::format("{:04}-{:02}-{:02}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday);
  }

  // A report is a stranger's: what is no day makes no folder.
  static bool is_day(std::string_view text) {
    if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
    return std::all_of(text.begin(), text.end(), [](char c) { return c == '-' || (c >= '0' && c <= '9'); });
  }

  void process_row(const Report& report, const analysis::Analysis& analysis, uid_t owner) {
    const analysis::ProcessRecord& process = report.process;
    Row row(Table::processes);
    row.text(C::processes_row_id, id_)
        .text(C::processes_time, process.time)
        .text(C::processes_run, process.run)
        .text(C::processes_host, process.host)
        .integer(C::processes_pid, process.pid)
        .integer(C::processes_ppid, process.ppid)
        .integer(C::processes_rank, process.rank)
        .text(C::processes_user, process.hidden ? std::string() : user_name(owner))
        .text(C::processes_job, first_set(process.env, {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"}))
        .text(C::processes_account,
              first_set(process.env, {"SLURM_JOB_ACCOUNT", "PBS_ACCOUNT", "LSB_PROJECT_NAME"}))
        .text(C::processes_queue, first_set(process.env, {"SLURM_JOB_PARTITION", "PBS_QUEUE", "LSB_QUEUE"}))
        .text(C::processes_exe, process.exe)
        .texts(C::processes_argv, process.argv)
        .text(C::processes_shim, process.shim)
        .text(C::processes_verdict, analysis::to_name(analysis.verdict))
        .boolean(C::processes_complete, report.end.has_value())
        .integer(C::processes_modules,
                 report.end ? std::max<std::uint64_t>(report.end->modules, report.modules.size())
                            : report.modules.size())
        .integer(C::processes_failures, report.failures.size())
        .integer(C::processes_dropped, report.missing + (report.end ? report.end->dropped : 0))
        .integer(C::processes_sample, std::uint64_t{1})
        .text(C::processes_report, report.path);
    if (report.driver) {
      row.text(C::processes_driver, report.driver->cuda_version)
          .text(C::processes_kernel_module, report.driver->kernel_module)
          .boolean(C::processes_simulated, report.driver->simulated);
    }
    out_.add(row, day_);
  }

  void device_row(const analysis::DeviceRecord& device) {
    Row row(Table::devices);
    row.text(C::devices_row_id, fmt::format("{}/device{}", id_, device.ordinal))
        .text(C::devices_process_id, id_)
        .integer(C::devices_ordinal, std::uint64_t{device.ordinal})
        .text(C::devices_name, device.name)
        .text(C::devices_compute_capability, device.compute_capability)
        .text(C::devices_uuid, device.uuid)
        .text(C::devices_pci, device.pci);
    out_.add(row, day_);
  }

  File file_of(const analysis::ReportIndex& index, const analysis::ObjectRecord* object) {
    if (object == nullptr) return {};
    File file{
        object->build_id.empty() ? object->path : object->build_id, object->path, object->build_id, {}, {}};
    if (const analysis::PackageRecord* package = index.package(object->id)) {
      file.package = package->name;
      file.version = package->version;
    } else {
      const auto [row, fresh] = packages_.try_emplace({object->path, object->build_id});
      if (fresh)
        if (const auto found = files_.package(*object)) row->second = {found->name, found->version};
      std::tie(file.package, file.version) = row->second;
    }
    return file;
  }

  // Once an export and file: what a file holds does not change with its build id.
  void image_rows(const analysis::ObjectRecord& object, const analysis::ReportIndex& index) {
    const File file = file_of(index, &object);
    if (!listed_.insert(file.id).second) return;
    std::vector<image::Candidate> candidates;
    if (object.images) {
      for (const analysis::ImageEntry& image : *object.images) {
        image_row(file, image.kind, image.arch, image.isa, image.count, image.bytes);
        const auto kind = image::parse_kind(image.kind);
        const auto arch = image::parse_arch(image.arch);
        if (kind && arch)
          candidates.push_back({*kind, *arch, image::parse_version(image.isa).value_or(image::Version{})});
      }
    } else if (const analysis::ObjectFile* found = files_.find(object)) {
      for (const analysis::ImageCount& image : found->image_counts()) {
        const image::Candidate& candidate = image.candidate;
        image_row(file, image::to_name(candidate.kind),
                  std::string(image::to_name(candidate.kind, candidate.arch).view()),
                  candidate.kind == image::ImageKind::ptx ? std::string(image::to_name(candidate.isa).view())
                                                          : std::string(),
                  image.count, image.bytes);
        candidates.push_back(candidate);
      }
    } else {
      listed_.erase(file.id);  // another report may know
    }
    if (!candidates.empty()) serves_rows(file, candidates);
  }

  void serves_rows(const File& file, const std::vector<image::Candidate>& candidates) {
    for (const image::ComputeCapabilityInfo& gpu : image::compat_tables().gpus) {
      const image::Selection selection =
          image::select_image(candidates, {.device = gpu.cc, .driver = {}, .jit = {}});
      constexpr std::array kHow = {"sass", "jit", "none"};
      const std::string capability(image::to_name(gpu.cc).view());
      Row row(Table::serves);
      row.text(C::serves_row_id, fmt::format("{}/{}", file.id, capability))
          .text(C::serves_file_id, file.id)
          .text(C::serves_compute_capability, capability)
          .text(C::serves_how, kHow.at(static_cast<std::size_t>(selection.choice)));
      out_.add(row, day_);
    }
  }

  void image_row(const File& file, std::string_view kind, const std::string& arch, const std::string& isa,
                 std::uint64_t count, std::uint64_t bytes) {
    Row row(Table::images);
    row.text(C::images_row_id, fmt::format("{}/{}/{}/{}", file.id, kind, arch, isa))
        .text(C::images_file_id, file.id)
        .text(C::images_build_id, file.build_id)
        .text(C::images_path, file.path)
        .text(C::images_package, file.package)
        .text(C::images_version, file.version)
        .text(C::images_kind, kind)
        .text(C::images_arch, arch)
        .text(C::images_isa, isa)
        .integer(C::images_count, count)
        .integer(C::images_bytes, bytes);
    if (const auto parsed = image::parse_arch(arch)) {
      row.number(C::images_capability, parsed->cc.major + parsed->cc.minor / 10.0);
      if (parsed->suffix != image::Suffix::none)
        row.text(C::images_suffix, std::string_view(arch).substr(arch.size() - 1));
    }
    out_.add(row, day_);
  }

  void load_rows(const Report& report, const analysis::ReportIndex& index) {
    struct Sum {
      std::uint64_t count = 0;
      double ms = 0;
      std::optional<unsigned> device;
      std::string selected;
      bool one_device = true, one_image = true;
    };
    std::map<std::tuple<std::string, int, bool>, std::pair<File, Sum>> sums;
    for (const analysis::ModuleRecord& module : report.modules) {
      File file = file_of(index, index.object(module.object));
      if (file.id.empty()) file.id = module.content_hash;
      auto& [known, sum] = sums[{file.id, module.result, module.jit.value_or(false)}];
      if (sum.count == 0) {
        known = std::move(file);
        sum.device = module.device;
        sum.selected = module.selected;
      }
      sum.one_device = sum.one_device && sum.device == module.device;
      sum.one_image = sum.one_image && sum.selected == module.selected;
      ++sum.count;
      sum.ms += module.ms;
    }
    for (const auto& [key, value] : sums) {
      const auto& [file, sum] = value;
      const auto& [file_id, result, jit] = key;
      Row row(Table::loads);
      row.text(C::loads_row_id, fmt::format("{}/load/{}/{}/{}", id_, file_id, result, jit ? "jit" : "sass"))
          .text(C::loads_process_id, id_)
          .text(C::loads_file_id, file.id)
          .text(C::loads_path, file.path)
          .text(C::loads_package, file.package)
          .text(C::loads_version, file.version)
          .integer(C::loads_result, static_cast<std::uint64_t>(result))
          .boolean(C::loads_jit, jit)
          .integer(C::loads_count, sum.count)
          .number(C::loads_ms, sum.ms);
      if (sum.one_device) row.integer(C::loads_device, sum.device);
      if (sum.one_image) row.text(C::loads_selected, sum.selected);
      out_.add(row, day_);
    }
  }

  /// Which finding explains the failure record on a line.
  std::map<std::uint64_t, std::size_t> finding_rows(const Report& report,
                                                    const analysis::Analysis& analysis) {
    std::map<std::uint64_t, std::size_t> explained;
    for (std::size_t number = 0; number < analysis.findings.size(); ++number) {
      const analysis::Finding& finding = analysis.findings[number];
      for (const analysis::ReportLine& failure : finding.failures) explained.emplace(failure.line, number);
      Row row(Table::findings);
      row.text(C::findings_row_id, finding_id(number))
          .text(C::findings_process_id, id_)
          .text(C::findings_time, report.process.time)
          .text(C::findings_cause, analysis::row_of(finding.cause).name)
          .text(C::findings_severity, analysis::to_name(finding.severity))
          .number(C::findings_confidence, finding.confidence)
          .text(C::findings_file_id, finding.build_id.empty() ? finding.object : finding.build_id)
          .text(C::findings_path, finding.object)
          .text(C::findings_package, finding.package.name)
          .text(C::findings_version, finding.package.version)
          .text(C::findings_kernel, finding.failed_kernel)
          .text(C::findings_need, finding.need)
          .texts(C::findings_have, finding.have)
          .integer(C::findings_count, finding.count);
      if (finding.code && *finding.code >= 0) row.integer(C::findings_code, finding.code);
      bool hypothetical = !finding.devices.empty();
      for (const analysis::Device& device : finding.devices)
        hypothetical = hypothetical && device.kind != analysis::Device::Kind::present;
      row.boolean(C::findings_hypothetical, hypothetical);
      if (!finding.devices.empty() && finding.devices.front().cc)
        row.text(C::findings_compute_capability, image::to_name(*finding.devices.front().cc).view());
      if (!finding.fixes.empty()) {
        row.text(C::findings_fix, finding.fixes.front().id)
            .text(C::findings_command, analysis::join(finding.fixes.front().commands, "\n"));
      }
      if (!finding.where.empty() && !finding.where.front().file.empty())
        row.text(C::findings_where_file, finding.where.front().file)
            .integer(C::findings_where_line, std::uint64_t{finding.where.front().line});
      out_.add(row, day_);
    }
    return explained;
  }

  std::string finding_id(std::size_t number) const { return fmt::format("{}/finding{}", id_, number); }

  void failure_row(const Report& report, const analysis::ReportIndex& index,
                   const analysis::FailureRecord& failure, const analysis::Analysis& analysis,
                   const std::map<std::uint64_t, std::size_t>& explained) {
    const analysis::ModuleRecord* module = index.module(failure.module);
    const File file = file_of(index, index.object(failure.object ? failure.object
                                                  : module       ? module->object
                                                                 : std::nullopt));
    Row row(Table::failures);
    row.text(C::failures_row_id, fmt::format("{}/failure{}", id_, failure.id))
        .text(C::failures_process_id, id_)
        .text(C::failures_time, report.process.time)
        .text(C::failures_stage, failure.stage)
        .text(C::failures_kernel, failure.kernel)
        .text(C::failures_file_id, file.id)
        .text(C::failures_path, file.path)
        .text(C::failures_build_id, file.build_id)
        .text(C::failures_package, file.package)
        .text(C::failures_version, file.version)
        .integer(C::failures_count, failure.count);
    const auto finding = explained.find(failure.line);
    if (finding != explained.end()) {
      row.text(C::failures_finding_id, finding_id(finding->second))
          .text(C::failures_cause, analysis::row_of(analysis.findings[finding->second].cause).name);
    }
    if (!failure.layers.empty()) {
      if (failure.layers.front().code >= 0)
        row.integer(C::failures_code, static_cast<std::uint64_t>(failure.layers.front().code));
      row.text(C::failures_name, failure.layers.front().name);
    }
    if (const analysis::DeviceRecord* device = index.device(failure.device))
      row.text(C::failures_compute_capability, device->compute_capability);
    if (report.driver) row.text(C::failures_driver, report.driver->cuda_version);
    if (!failure.python.empty())
      row.text(C::failures_python_file, failure.python.front().file)
          .integer(C::failures_python_line, std::uint64_t{failure.python.front().line});
    out_.add(row, day_);
  }

  void kernel_rows(const Report& report, const analysis::ReportIndex& index) {
    std::size_t number = 0;
    for (const analysis::CoverageRecord& kernel : report.coverage) {
      const analysis::ModuleRecord* module = index.module(kernel.module);
      File file = file_of(index, index.object(kernel.object));
      if (file.id.empty() && module != nullptr) file.id = module->content_hash;
      Row row(Table::kernels);
      row.text(C::kernels_row_id, fmt::format("{}/kernel{}", id_, number++))
          .text(C::kernels_process_id, id_)
          .text(C::kernels_kernel, kernel.kernel)
          .text(C::kernels_file_id, file.id)
          .integer(C::kernels_launches, kernel.launches);
      out_.add(row, day_);
    }
  }

  TableFiles& out_;
  std::string id_;
  std::string day_;
  analysis::ObjectFiles files_;
  std::map<std::pair<std::string, std::string>, std::pair<std::string, std::string>> packages_;
  std::set<std::string> listed_;
};

void write_manifest(const fs::path& folder, const std::string& name, const std::vector<Input>& inputs,
                    const Result& result) {
  nlohmann::json manifest;
  manifest["schema"] = "kshim-facts/1";
  manifest["host"] = host_name();
  for (const Input& input : inputs) manifest["inputs"].push_back(input.id());
  for (const auto& [table, rows] : result.rows) manifest["rows"][std::string(table)] = rows;
  const fs::path path = folder / (name + ".json");
  std::error_code error;
  fs::create_directories(folder, error);
  const fs::path temporary = folder / ("." + name + ".unfinished");
  fs::remove(temporary, error);
  TableFiles::write_file(temporary,
                         manifest.dump(1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n");
  fs::rename(temporary, path, error);
  if (error)
    throw cli::UserError(fmt::format("{}: {}", path.string(), error.message()), cli::exit_status::kMisuse);
}

}  // namespace

Result export_reports(const std::vector<fs::path>& paths, const Options& options) {
  Result result;
  const fs::path manifests = options.folder / "manifest";
  const std::set<std::string> known = known_inputs(manifests);
  std::vector<Input> inputs;
  std::vector<uid_t> owners;
  const std::int64_t now_s =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  std::uint64_t total = 0;
  for (const analysis::ReportFile& file : analysis::find_report_files(paths, result.notes)) {
    struct stat status {};
    std::error_code ignored;
    Input input{fs::absolute(file.path, ignored), file.bytes, 0};
    if (::stat(file.path.c_str(), &status) == 0)
      input.changed_ns = status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec;
    if (known.count(input.id()) != 0) {
      ++result.known;
      continue;
    }
    inputs.push_back(std::move(input));
    owners.push_back(status.st_uid);
    total += file.bytes;
  }
  if (inputs.empty()) return result;
  std::string all = host_name();
  for (const Input& input : inputs) all += input.id();
  const std::string name = hash_of(all);
  TableFiles files(options.folder, name, options.zstd);
  Rows rows(files);
  std::vector<Input> taken;
  analysis::Options how;
  how.keep_private = true;
  std::uint64_t done = 0;
  for (std::size_t at = 0; at < inputs.size(); ++at) {
    const Input& input = inputs[at];
    const auto got = analysis::read_report(input.path, {}, analysis::Homes::hidden);
    done += input.bytes;
    if (options.progress) options.progress(done, total);
    if (const auto* why = std::get_if<std::string>(&got)) {
      rows.reject(input.path.string(), 0, *why);
      ++result.rejected;
      taken.push_back(input);
      continue;
    }
    const Report& report = std::get<Report>(got);
    if (!report.end && now_s - input.changed_ns / 1'000'000'000 < options.settle_s) {
      ++result.unsettled;
      continue;
    }
    rows.add(report, analysis::analyze({input.path}, how), owners[at]);
    ++result.reports;
    taken.push_back(input);
  }
  if (taken.empty()) return result;
  files.finish();
  result.rows = files.rows();
  write_manifest(manifests, name, taken, result);
  return result;
}

}  // namespace kshim::exports
