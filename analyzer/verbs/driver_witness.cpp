// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/driver_witness.h"

#include <re2/re2.h>

#include "analyzer/core/redacted.h"
#include "analyzer/core/text.h"
#include "analyzer/device_code/elf_file.h"
#include "analyzer/diagnose/rules.h"
#include "analyzer/input/report/report_index.h"

namespace kshim::verbs {
using input::FailureRecord;
using input::ObjectRecord;
using input::Report;

namespace {

constexpr int kNoBinary = 209;
constexpr std::size_t kMaxRefusals = 256;
constexpr std::size_t kMaxInjected = 256;

/// Whether the code by itself is about device code. Programs ask for names that need not be there.
bool is_about_images(int code) {
  diagnose::Facts facts;
  facts.call.codes = {code};
  const core::Cause cause = diagnosis_of(facts).cause;
  return is_image_cause(cause) && cause != core::Cause::kernel_missing_from_image;
}

/// "GPU ISA 75" is 7.5, "120" is 12.0.
std::optional<image::ComputeCapability> gpu_of(const std::string& isa) {
  const auto arch = image::parse_arch("sm_" + isa);
  return arch ? std::optional(arch->cc) : std::nullopt;
}

class LogReader {
 public:
  /// `number`: of the line of the log or report that has the text. `times`: how often it was said.
  void line(std::string_view text, std::uint32_t number, std::uint64_t times = 1) {
    // [time][thread][source][severity], and in older drivers [entry point].
    static const RE2 kHead(R"(^\[[^\]]*\]\[(\d+)\]\[[^\]]*\]\[[A-Z]\](?:\[(cu\w+)\])?\s*(.*)$)");
    static const RE2 kReturning(R"(^Returning (\d{1,3}) \(\w*\) from (cu\w+))");
    static const RE2 kIsa(R"(\bGPU ISA (\d{2,3})\b)");
    static const RE2 kKernel(R"(^Kernel \(([^)]*)\) cannot be )");
    number_ = number;
    times_ = times;
    long thread = 0;
    std::string call;
    std::string message;
    if (!RE2::FullMatch(text, kHead, &thread, &call, &message)) return;
    Refusal& now = open_[thread];
    if (int code = 0; RE2::PartialMatch(message, kReturning, &code, &call)) {
      now.code = code;
      now.call = call;
      return close(thread);
    }
    if (std::string isa; RE2::PartialMatch(message, kIsa, &isa)) {
      now.gpu = gpu_of(isa);
      now.code = kNoBinary;
    }
    if (RE2::PartialMatch(message, kKernel, &now.kernel) && !call.empty() && now.code == 0)
      return add_kernel(thread, call);
    if (!now.said.empty()) now.said += '\n';
    now.said += message;
    if (call.empty()) return;
    now.call = call;
    close(thread);
  }
  std::vector<Refusal> take() {
    // A process that was killed may have said the reason, and not what it returned.
    while (!open_.empty()) close(open_.begin()->first);
    return std::move(out_);
  }

 private:
  /// The older form: a line by itself, behind the one with the reason.
  void add_kernel(long thread, const std::string& call) {
    const std::string kernel = std::move(open_[thread].kernel);
    open_.erase(thread);
    for (auto known = out_.rbegin(); known != out_.rend(); ++known)
      if (known->thread == thread && known->call == call) {
        if (known->kernel.empty()) known->kernel = kernel;
        return;
      }
  }

  void close(long thread) {
    Refusal refusal = std::move(open_[thread]);
    open_.erase(thread);
    if (!is_about_images(refusal.code)) return;
    refusal.thread = thread;
    refusal.line = number_;
    refusal.count = times_;
    refusal.last = true;
    for (Refusal& known : out_)
      if (known.thread == thread) known.last = false;
    for (Refusal& known : out_)
      if (known.thread == thread && known.call == refusal.call && known.code == refusal.code &&
          (known.kernel == refusal.kernel || refusal.kernel.empty())) {
        known.count += times_;
        known.last = true;
        return;
      }
    if (out_.size() < kMaxRefusals) out_.push_back(std::move(refusal));
  }

  std::map<long, Refusal> open_;  ///< by thread
  std::vector<Refusal> out_;
  std::uint32_t number_ = 0;
  std::uint64_t times_ = 1;
};

}  // namespace

std::vector<Refusal> refusals_in(std::string_view log) {
  LogReader reader;
  std::uint32_t number = 0;
  for (const std::string& line : core::split(log, "\n"))
    reader.line(core::redacted(line, report::Content::text), ++number);
  return reader.take();
}

bool is_without_shim(const Report& report) {
  return std::ranges::any_of(report.bypasses,
                             [](const input::BypassRecord& row) { return row.how == "absent"; });
}

namespace {

std::vector<Refusal> refusals_in(const Report& report) {
  LogReader reader;
  for (const FailureRecord& failure : report.failures)
    for (const std::string& line : core::split(failure.driver_log, "\n"))
      reader.line(line, failure.line, failure.count);
  return reader.take();
}

}  // namespace

DriverWitness::DriverWitness(const diagnose::RunFacts& run)
    : run_(run), refusals_(refusals_in(run.driver_log)) {}

void DriverWitness::learn(const Report& report) {
  if (!driver_ && report.driver) driver_ = report.driver;
  if (devices_.empty()) devices_ = report.devices;
  if (host_.empty()) host_ = report.process.host;
  const bool shim = !is_without_shim(report);
  if (!shim && injected_.size() < kMaxInjected) injected_.push_back(report);
  if (refusals_.empty()) return;
  const auto pid = static_cast<long>(report.process.pid);
  Seen& seen = processes_[pid];
  seen.shim = seen.shim || shim;
  for (const FailureRecord& failure : report.failures) {
    process_of_thread_.try_emplace(static_cast<long>(failure.tid), pid);
    for (const input::Layer& layer : failure.layers) seen.codes.insert(layer.code);
  }
  if (!shim)
    for (const Refusal& refusal : refusals_in(report)) seen.codes.insert(refusal.code);
  for (const input::ModuleRecord& module : report.modules)
    if (module.result != 0) seen.codes.insert(static_cast<int>(module.result));
  if (!report.gaps.empty()) seen.codes.insert(kNoBinary);
  for (const input::BypassRecord& bypass : report.bypasses) seen.past_it.push_back(bypass.path);
  codes_.insert(seen.codes.begin(), seen.codes.end());
}

/// `report` gets the call, and its machine from what other processes saw.
FailureRecord& DriverWitness::add(const Refusal& refusal, UnseenProcess& to) const {
  Report& report = to.report;
  if (report.failures.empty()) {
    report.driver = driver_;
    report.devices = devices_;
    if (report.devices.empty() && refusal.gpu) {
      input::DeviceRecord& device = report.devices.emplace_back();
      device.name = "a GPU";
      device.compute_capability = name(*refusal.gpu);
    }
  }
  FailureRecord& failure = report.failures.emplace_back();
  failure.id = report.failures.size();
  failure.line = refusal.line;
  failure.stage = refusal.call.find("Load") != std::string::npos ? "load" : "lookup";
  failure.layers = {{"driver", refusal.call.empty() ? "the driver" : refusal.call, refusal.code, {}}};
  failure.kernel = refusal.kernel;
  failure.count = refusal.count;
  failure.tid = static_cast<std::uint64_t>(refusal.thread);
  failure.driver_log = refusal.said;
  if (refusal.last) to.deciding.insert(refusal.line);
  const auto device = std::ranges::find_if(report.devices, [&](const input::DeviceRecord& row) {
    return !refusal.gpu || row.compute_capability == name(*refusal.gpu);
  });
  if (device != report.devices.end()) failure.device = device->ordinal;
  return failure;
}

std::vector<UnseenProcess> DriverWitness::unseen(input::ObjectFiles& files) const {
  const auto has_code = [&](const ObjectRecord& object) {
    const device_code::ObjectFile* file = files.find(object);
    return file != nullptr && !file->image_counts().empty();
  };
  std::map<long, UnseenProcess> out;
  for (const Refusal& refusal : refusals_) {
    const auto thread = process_of_thread_.find(refusal.thread);
    const long pid = thread != process_of_thread_.end() ? thread->second : refusal.thread;
    const auto process = processes_.find(pid);
    const std::string exe = run_.exe_of ? run_.exe_of(pid) : std::string();
    // A thread that nobody knows may be one of a process that a shim has seen fail alike.
    const bool told = process != processes_.end() ? process->second.knows(refusal.code)
                                                  : exe.empty() && codes_.contains(refusal.code);
    if (told) continue;
    UnseenProcess& unseen = out[pid];
    Report& report = unseen.report;
    if (report.path.empty()) {
      report.path = run_.driver_log_path.string();
      report.process.host = host_;
      report.process.pid = static_cast<std::uint64_t>(pid);
      report.process.exe = exe;
      // Whose code it was, where one file alone can be meant.
      for (const std::string& path :
           process == processes_.end() ? std::vector{exe} : process->second.past_it) {
        if (path.empty()) continue;
        ObjectRecord object = input::object_record(path, device_code::build_id_of(path));
        object.id = report.objects.size();
        if (has_code(object)) report.objects.push_back(std::move(object));
      }
      if (report.objects.size() > 1) report.objects.clear();
    }
    FailureRecord& failure = add(refusal, unseen);
    if (!report.objects.empty()) failure.object = report.objects.front().id;
  }
  std::vector<UnseenProcess> all;
  for (auto& [pid, unseen] : out) all.push_back(std::move(unseen));
  for (const Report& injected : injected_) {
    UnseenProcess& unseen = all.emplace_back();
    unseen.report.path = injected.path;
    unseen.report.process = injected.process;
    for (const Refusal& refusal : refusals_in(injected)) {
      FailureRecord& failure = add(refusal, unseen);
      const auto source = std::ranges::find(injected.failures, refusal.line, &FailureRecord::line);
      if (source == injected.failures.end()) continue;
      failure.native = source->native;
      failure.python = source->python;
      failure.python_main = source->python_main;
      for (const input::NativeFrame& frame : failure.native) {
        if (frame.object.empty()) continue;
        const auto known = std::ranges::find(unseen.report.objects, frame.object, &ObjectRecord::path);
        ObjectRecord object = known != unseen.report.objects.end()
                                  ? *known
                                  : input::object_record(frame.object, frame.build_id);
        if (known == unseen.report.objects.end()) {
          object.id = unseen.report.objects.size();
          if (!has_code(object)) continue;
          unseen.report.objects.push_back(object);
        }
        failure.object = object.id;
        break;
      }
    }
    if (unseen.report.failures.empty()) all.pop_back();
  }
  return all;
}

core::Evidence DriverWitness::unseen_refusals(const Report& report, std::uint64_t count) const {
  const std::string& exe = report.process.exe;
  const auto process = processes_.find(static_cast<long>(report.process.pid));
  const bool has_shim = process != processes_.end() && process->second.shim;
  return {core::EvidenceId::driver_log,
          fmt::format("The driver's log says that it refused {} in process {}{}, and libkshim.so {}.",
                      core::counted(count, "call"), report.process.pid,
                      exe.empty() ? "" : fmt::format(" ({})", exe),
                      has_shim ? "did not see that" : "was not in it"),
          {},
          {{"pid", std::to_string(report.process.pid)}, {"exe", exe}, {"count", std::to_string(count)}}};
}

}  // namespace kshim::verbs
