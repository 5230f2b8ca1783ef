// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/report_findings.h"

#include "analyzer/core/text.h"
#include "analyzer/diagnose/about.h"
#include "analyzer/diagnose/failure_finding.h"

namespace kshim::diagnose {
using core::Cause;
using core::counted;
using core::EvidenceId;
using core::Finding;
using core::Severity;
using input::FailureRecord;
using input::ModuleRecord;
using input::ObjectRecord;

namespace {

// The shim writes each distinct failure once and counts the rest: more than this is no honest report.
constexpr std::size_t kMaxReported = 4096;

// Codes that an ignored earlier failure leaves behind: handles that were never made, names that were never
// loaded, and the runtime's last error read by a later call.
bool may_follow(const FailureRecord& failure, const Diagnosis& diagnosis) {
  if (diagnosis.match.confidence >= kOwnGround) return false;
  return std::ranges::any_of(failure.layers, [](const input::Layer& layer) {
    return code_has(layer.code, code_trait::handle | code_trait::not_found);
  });
}

// The earlier finding that a failure without ground of its own goes back to: of the same kernel, else of the
// same file, else, where the failure names neither, the last one about images.
Finding* earlier_cause(std::vector<Finding>& findings, const FailureRecord& failure,
                       const InReport& subject) {
  const std::string kernel = core::demangle(failure.kernel);
  Finding* last = nullptr;
  for (Finding& finding : findings) {
    if (!is_image_cause(finding.cause) || finding.severity != Severity::error) continue;
    if (!kernel.empty() && finding.failed_kernel == kernel) return &finding;
    if (subject.object != nullptr && finding.object == subject.object->path) return &finding;
    last = &finding;
  }
  const bool nameless = kernel.empty() && subject.object == nullptr && subject.module == nullptr;
  return nameless ? last : nullptr;
}

void add_follow_up(const Scene& scene, const FailureRecord& failure, Finding& cause) {
  if (failure.layers.empty()) return;
  const input::Layer& layer = failure.layers.back();
  cause.evidence.push_back(
      {EvidenceId::later_failure,
       fmt::format("{} answered {} later, which follows from it.", layer.api, layer.code),
       location(scene.report, failure.line),
       {{"call", layer.api}, {"code", std::to_string(layer.code)}}});
  cause.failures.push_back(location(scene.report, failure.line));
}

// With --assume-cc the recorded error belongs to another GPU: what counts is whether the images fit the
// assumed one.
bool would_work(InReport& subject) {
  Facts& facts = subject.facts;
  Facts code_alone = facts;
  code_alone.images.list.clear();
  code_alone.images.scope = ImageScope::none;
  if (!is_image_cause(diagnosis_of(code_alone).cause) || facts.images.scope == ImageScope::none) return false;
  facts.call.codes.clear();
  return select(facts.images.list, facts, facts.driver.switches).choice != image::Choice::none;
}

// "A program that merely finds out that there is no GPU leaves no alarm", nor does one that asks for less
// memory, counts GPUs until there is none, or has another compiler's target to fall back on, and ends with 0.
void quieten(const Scene& scene, Finding& finding) {
  if (has_trait(finding.cause, core::cause_trait::handled) && ending_of(scene.report, scene.run).known() &&
      ended_well(scene))
    finding.severity = Severity::info;
}

// A library that refuses the GPU by itself, and libraries that do not fit together: the latter are named
// beside the former, but for a cuDNN whose release says the same and more.
void add_libraries(const Scene& scene, const std::vector<Judged>& judged, std::vector<Finding>& findings) {
  auto refusal = refusing_library(scene, judged, findings);
  const bool cudnn = refusal && core::basename_of(refusal->object).starts_with("libcudnn");
  if (refusal && !cudnn) findings.push_back(std::move(*refusal));
  add_library_findings(scene, judged, findings);
  const auto told = std::ranges::find(findings, Cause::cudnn_mismatch, &Finding::cause);
  if (!cudnn) return;
  if (told == findings.end()) {
    findings.push_back(std::move(*refusal));
  } else if (!refusal->failed_call.empty()) {
    // Its look-up of its own kernel failed, which the release explains.
    told->severity = std::max(told->severity, refusal->severity);
    told->confidence = std::max(told->confidence, refusal->confidence);
    told->code = refusal->code;
    told->code_name = refusal->code_name;
    told->failed_call = refusal->failed_call;
    told->where = refusal->where;
    for (core::Evidence& row : refusal->evidence)
      if (row.id == EvidenceId::failed_call || row.id == EvidenceId::ended_silently)
        told->evidence.push_back(std::move(row));
  }
}

// What a process gives back while it ends: the driver or the context may be gone before it, and nobody is
// harmed. An error of the program's own work has another call, or another code.
bool is_cleanup_at_end(const Scene& scene, const FailureRecord& failure) {
  constexpr int kDeinitialized = 4;
  static constexpr std::string_view kCleanup[] = {"Unload", "Destroy", "Free", "Release"};
  if (!ended_well(scene) || failure.layers.empty()) return false;
  return std::ranges::all_of(failure.layers, [&](const input::Layer& layer) {
    const bool gone = layer.code == kDeinitialized || layer.code == core::kNotInitialized ||
                      code_has(layer.code, code_trait::handle);
    return gone && std::ranges::any_of(
                       kCleanup, [&](std::string_view word) { return core::contains(layer.api, word); });
  });
}

// A thread's first call of the runtime may be a stream-ordered allocation: the runtime asks the driver, gets
// 201, binds the primary context to the thread, and asks again (runtime 13.0, measured on the simulator). If
// that failed, the runtime's call would have too.
bool is_asked_again(const Scene& scene, const FailureRecord& failure) {
  constexpr std::array kNoContext{201, 709};  // none yet, and one that a reset has ended
  if (failure.layers.size() != 1 || !core::contains(kNoContext, failure.layers[0].code)) return false;
  const std::string_view api = failure.layers[0].api;
  if (!api.starts_with("cuMemAllocAsync") && !api.starts_with("cuMemAllocFromPoolAsync")) return false;
  return calling_runtime(failure) || ended_well(scene);  // a static runtime is not told from the program
}

constexpr std::size_t kNamed = 8;  // files; the rest is one sum
constexpr double kSelectedByRule = 0.9;

struct Share {
  const ModuleRecord* first = nullptr;
  std::uint64_t modules = 0;
  double milliseconds = 0;
  std::set<std::string> ptx;           ///< compute_75 ...
  std::vector<std::uint32_t> numbers;  ///< of the modules, by their order in the report
};

// A file that holds an image alone, as in a cache: the program loaded it by its name.
std::string folder_of_image(const Scene& scene, const ModuleRecord& module) {
  const ObjectRecord* object = scene.index.object(module.object);
  const bool by_name = module.api == "cuModuleLoad" || module.api == "cuLibraryLoadFromFile";
  if (object == nullptr || !by_name) return {};
  return object->path.substr(0, object->path.rfind('/') + 1);
}

// Loads by file, those of such files by folder; what has none, from memory, together.
std::vector<Share> shares_of(const Scene& scene) {
  std::map<std::pair<std::string, std::uint64_t>, Share> by_object;
  for (const ModuleRecord& module : scene.report.modules) {
    if (module.jit != true || module.result != 0) continue;
    std::string folder = folder_of_image(scene, module);
    const std::uint64_t object = folder.empty() ? module.object.value_or(0) : 0;
    Share& share = by_object[{std::move(folder), object}];
    if (share.first == nullptr) share.first = &module;
    ++share.modules;
    share.milliseconds += module.ms;
    share.numbers.push_back(static_cast<std::uint32_t>(&module - scene.report.modules.data()));
    if (!module.selected.empty()) share.ptx.insert(module.selected);
  }
  std::vector<Share> out;
  for (auto& [place, share] : by_object) out.push_back(std::move(share));
  std::ranges::stable_sort(out, std::greater(), &Share::milliseconds);
  return out;
}

std::string took(const Scene& scene, double milliseconds, std::span<const std::uint32_t> modules) {
  const bool simulated = scene.report.driver && scene.report.driver->simulated;
  if (simulated) return ": on a real GPU that takes time";
  return scene.options.duration ? scene.options.duration(modules) : duration_clause(milliseconds);
}

Finding tax_of(const Scene& scene, const Share& share, Severity severity) {
  InReport subject;
  subject.object = scene.index.object(share.first->object);
  subject.module = share.first;
  subject.device = scene.index.device(share.first->device);
  subject.facts.images = find_images({subject.object, share.first->offset, nullptr, {}}, scene.files);
  set_facts(scene, subject);
  Finding finding = new_finding(Cause::jit_tax, kSelectedByRule);
  finding.severity = severity;
  finding.count = share.modules;
  if (subject.object != nullptr) {
    finding.object = subject.object->path;
    finding.build_id = subject.object->build_id;
  }
  const std::string who =
      subject.object != nullptr ? std::string(core::basename_of(finding.object)) : "code from memory";
  finding.headline = fmt::format("{}: {} compiled from PTX at load", who, counted(share.modules, "module"));
  if (auto device = device_of(scene, subject.device)) finding.devices.push_back(std::move(*device));
  describe_images(subject.facts, finding);
  finding.evidence.push_back(
      {EvidenceId::compiled_modules,
       fmt::format("The driver compiled {} of {} from PTX{}{}.", counted(share.modules, "module"), who,
                   share.ptx.empty()
                       ? ""
                       : fmt::format(" ({})", core::join({share.ptx.begin(), share.ptx.end()}, ", ")),
                   took(scene, share.milliseconds, share.numbers)),
       location(scene.report, share.first->line),
       {{"modules", std::to_string(share.modules)}}});
  set_about(scene, subject, finding);
  return finding;
}

constexpr double kSure = 0.9;

/// The objects of the report that hold device code, by what refers to them.
std::set<std::uint64_t> with_device_code(const input::Report& report) {
  std::set<std::uint64_t> out;
  for (const ObjectRecord& row : report.objects) {
    if (row.fatbins.value_or(0) != 0) out.insert(row.id);
  }
  for (const ModuleRecord& row : report.modules) {
    if (row.object) out.insert(*row.object);
  }
  for (const input::GapRecord& row : report.gaps) {
    if (row.object) out.insert(*row.object);
  }
  return out;
}

Finding finding_for(const std::string& need, const std::vector<std::string>& paths, bool assumed) {
  Finding out = new_finding(
      Cause::unknown, kSure,
      fmt::format("kshim cannot tell whether this runs on {}: some loaded files are not on this machine, and "
                  "the report does not list their contents",
                  need));
  out.severity = Severity::warning;
  out.need = need;
  const auto arch = image::parse_arch(need);
  out.devices = {core::target_device(arch ? std::optional(arch->cc) : std::nullopt)};
  if (assumed) out.devices.front().kind = core::Device::Kind::assumed;
  Facts at;
  at.file.need = need;
  at.file.unread = paths;
  set_about(std::move(at), out);
  return out;
}

/// CUDA_LAUNCH_BLOCKING=1: a launch returns when its kernel has ended.
bool launches_block(const input::Report& report) {
  const auto found = report.process.env.find("CUDA_LAUNCH_BLOCKING");
  return found != report.process.env.end() && found->second != "0";
}

/// A crash that a later call returns: that may be a launch, whose kernel never ran.
Finding told_later(const Scene& scene, const FailureRecord& failure, const Diagnosis& diagnosis,
                   const FindingSet& gathered) {
  FailureRecord call = failure;
  call.kernel.clear();
  call.module.reset();
  call.object.reset();
  return finding_of(scene, call, subject_of(scene, call), diagnosis, gathered);
}

}  // namespace

std::vector<Finding> findings_of(const Scene& scene) {
  FindingSet gathered;
  std::vector<Judged> judged;
  const std::size_t count = std::min(scene.report.failures.size(), kMaxReported);
  for (std::size_t i = 0; i < count; ++i) {
    const FailureRecord& failure = scene.report.failures[i];
    if (is_cleanup_at_end(scene, failure) || is_asked_again(scene, failure)) continue;
    InReport subject = subject_of(scene, failure);
    if (scene.options.assume_cc && would_work(subject)) continue;
    const Diagnosis diagnosis = diagnosis_of(subject.facts);
    // A compiler that knows the architecture rejected something else: the program's own business.
    if (subject.facts.call.compiler && diagnosis.cause == Cause::unknown) continue;
    if (may_follow(failure, diagnosis)) {
      if (Finding* cause = earlier_cause(gathered.findings(), failure, subject)) {
        add_follow_up(scene, failure, *cause);
        continue;
      }
    }
    judged.push_back({&failure, diagnosis.cause, diagnosis.match.confidence});
    Finding finding = diagnosis.cause == Cause::device_fault && !launches_block(scene.report)
                          ? told_later(scene, failure, diagnosis, gathered)
                          : finding_of(scene, failure, subject, diagnosis, gathered);
    quieten(scene, finding);
    gathered.add(std::move(finding));
  }
  std::vector<Finding> findings = std::move(gathered.findings());
  for (Finding& finding : stale_errors(scene, judged)) merge_into(findings, std::move(finding));
  if (auto unchecked = unchecked_failure(scene, judged)) findings.push_back(std::move(*unchecked));
  add_libraries(scene, judged, findings);
  for (Finding& finding : compiled_out(scene)) merge_into(findings, std::move(finding));
  std::vector<Finding> latent = latent_gaps(scene, findings);
  add_coverage(scene, latent);
  for (Finding& finding : latent) merge_into(findings, std::move(finding));
  for (Finding& finding : jit_taxes(scene)) findings.push_back(std::move(finding));
  return findings;
}

std::string duration_clause(double milliseconds) {
  return milliseconds < input::kNoticeableJit
             ? fmt::format(", which took {:.0f} ms in this process", milliseconds)
             : fmt::format(", which took {:.1f} s in this process", milliseconds / 1000);
}

std::vector<Finding> jit_taxes(const Scene& scene) {
  std::vector<Finding> out;
  std::vector<Share> shares = shares_of(scene);
  double total = 0;
  for (const Share& share : shares) total += share.milliseconds;
  const Severity severity = total > input::kNoticeableJit ? Severity::warning : Severity::info;
  for (std::size_t i = 0; i < shares.size() && i < kNamed; ++i)
    out.push_back(tax_of(scene, shares[i], severity));
  if (shares.size() > kNamed) {
    std::uint64_t modules = 0;
    double rest = 0;
    std::vector<std::uint32_t> numbers;
    for (std::size_t i = kNamed; i < shares.size(); ++i) {
      modules += shares[i].modules;
      rest += shares[i].milliseconds;
      numbers.insert(numbers.end(), shares[i].numbers.begin(), shares[i].numbers.end());
    }
    out.back().evidence.push_back(
        {EvidenceId::more,
         fmt::format("So were {} of {}{}.", counted(modules, "module"),
                     counted(shares.size() - kNamed, "other file"), took(scene, rest, numbers)),
         location(scene.report, shares[kNamed].first->line),
         {{"count", std::to_string(shares.size() - kNamed)}}});
  }
  return out;
}

std::vector<Finding> unjudged(const Scene& scene, const std::vector<image::ComputeCapability>& wanted,
                              const std::set<std::pair<std::string, std::string>>& told) {
  std::vector<Finding> out;
  if (wanted.empty()) return out;
  const std::set<std::uint64_t> holding = with_device_code(scene.report);
  for (const image::ComputeCapability cc : wanted) {
    const std::string need = sm_name(cc);
    std::vector<const ObjectRecord*> gone;
    for (const ObjectRecord& row : scene.report.objects) {
      const bool listed = row.images && !row.images->empty();
      if (listed || row.fatbins == 0U || holding.count(row.id) == 0) continue;
      if (told.count({row.path, need}) == 0 && scene.files.find(row) == nullptr) gone.push_back(&row);
    }
    if (gone.empty()) continue;
    std::vector<std::string> paths;
    for (const ObjectRecord* row : gone) paths.push_back(row->path);
    Finding finding = finding_for(need, paths, scene.options.assume_cc.has_value());
    for (std::size_t i = 0; i < gone.size() && i < kNamed; ++i) {
      finding.evidence.push_back({EvidenceId::unread_file,
                                  fmt::format("{} {}.", gone[i]->path, scene.files.why_not(*gone[i])),
                                  location(scene.report, gone[i]->line),
                                  {{"file", gone[i]->path}}});
    }
    if (gone.size() > kNamed) {
      finding.evidence.push_back(
          {EvidenceId::more,
           fmt::format("The same applies to {}.", counted(gone.size() - kNamed, "more file")),
           location(scene.report, gone[kNamed]->line)});
    }
    finding.count = gone.size();
    finding.unread = std::move(paths);
    out.push_back(std::move(finding));
  }
  return out;
}

}  // namespace kshim::diagnose
