// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/failure_finding.h"

#include "analyzer/core/text.h"
#include "analyzer/data/knowledge.h"
#include "analyzer/diagnose/places.h"

namespace kshim::diagnose {
using core::Cause;
using core::Evidence;
using core::EvidenceId;
using core::Finding;
using core::Near;
using input::FailureRecord;
using input::Layer;

namespace {

// The layer that a finding shows: the first whose code is the diagnosis' own, which for images is the
// driver's.
const Layer* shown_layer(const FailureRecord& failure) {
  for (const Layer& layer : failure.layers) {
    if (layer.code != 0) return &layer;
  }
  return nullptr;
}

std::string code_name(const Layer& layer) {
  if (!layer.name.empty()) return layer.name;
  const CudaError* error = find_cuda_error(layer.code);
  if (error == nullptr) return {};
  const char* name =
      layer.layer == "runtime" || error->driver_name == nullptr ? error->runtime_name : error->driver_name;
  return name != nullptr ? name : "";
}

std::string layers_text(const FailureRecord& failure) {
  std::vector<std::string> parts;
  for (const Layer& layer : failure.layers) {
    const std::string name = code_name(layer);
    parts.push_back(fmt::format("{} returned {}{}", shown_call(layer.api), layer.code,
                                name.empty() ? "" : fmt::format(" ({})", name)));
  }
  return core::enumerate(parts);
}

void add_failure_evidence(const Scene& scene, const FailureRecord& failure, const Finding& finding,
                          std::vector<Evidence>& out) {
  std::string text = layers_text(failure);
  if (text.empty()) text = "A call failed";
  if (!finding.failed_kernel.empty())
    text += fmt::format(" for the kernel {}", core::shorten(finding.failed_kernel, 60));
  if (failure.count > 1) text += fmt::format(", {} times", failure.count);
  Evidence row{EvidenceId::failed_call, text + ".", location(scene.report, failure.line)};
  if (const Layer* layer = shown_layer(failure)) {
    row.arguments = {
        {"call", layer->api}, {"code", std::to_string(layer->code)}, {"name", code_name(*layer)}};
  }
  if (!failure.kernel.empty()) row.arguments.emplace_back("kernel", failure.kernel);
  row.arguments.emplace_back("count", std::to_string(failure.count));
  out.push_back(std::move(row));
}

// The driver's own words, a few lines of them.
void add_driver_words(const Scene& scene, const FailureRecord& failure, std::vector<Evidence>& out) {
  constexpr std::size_t kMax = 400;
  const auto add = [&](EvidenceId id, std::string_view who, const std::string& text) {
    if (text.empty()) return;
    std::string shown = text.substr(0, kMax);
    std::ranges::replace(shown, '\n', ' ');
    out.push_back({id,
                   fmt::format("{}: {}{}", who, shown, text.size() > kMax ? " ..." : ""),
                   location(scene.report, failure.line),
                   {{"text", text}}});
  };
  add(EvidenceId::jit_log, "The JIT compiler wrote", failure.jit_log);
  add(EvidenceId::driver_log, "The driver's error log says", failure.driver_log);
}

void add_ground(const Scene& scene, const InReport& subject, const Diagnosis& diagnosis,
                std::uint32_t fallback_line, std::vector<Evidence>& out) {
  const Facts::Images& images = subject.facts.images;
  const std::string clause = images.source ? images.source->clause : "";
  const std::uint32_t line = images.source && images.source->line != 0 ? images.source->line : fallback_line;
  const std::string source = images.scope == ImageScope::none ? "" : fmt::format(" (images {})", clause);
  Evidence row{EvidenceId::rule, fmt::format("{}{}.", diagnosis.match.because, source),
               location(scene.report, line)};
  row.arguments = {{"cause", std::string(row_of(diagnosis.cause).name)}, {"images", clause}};
  out.push_back(std::move(row));
}

void add_surroundings(const Scene& scene, const InReport& subject, Cause cause, std::vector<Evidence>& out) {
  if (subject.device != nullptr && !scene.options.assume_cc) {
    const core::Device device = device_of(scene, subject.device).value_or(core::Device{});
    out.push_back({EvidenceId::device, text_of(device) + ".", location(scene.report, subject.device->line)});
    out.back().arguments = {{"ordinal", std::to_string(subject.device->ordinal)},
                            {"name", subject.device->name}};
  }
  if (has_trait(cause, core::cause_trait::switched)) {
    for (const std::string& name : data::names_of(subject.facts.driver.switches)) {
      const std::string& value = scene.report.process.env.at(name);
      out.push_back({EvidenceId::environment,
                     fmt::format("{}={} is in the environment.", name, value),
                     location(scene.report, scene.report.process.line),
                     {{"variable", name}, {"value", value}}});
    }
  }
  if (subject.kept != nullptr) {
    const input::KeptImage& kept = *subject.kept;
    Evidence row{EvidenceId::kept_image,
                 fmt::format("The image is kept as {}.", kept.path),
                 location(scene.report, subject.module->line),
                 {{"file", kept.path}}};
    if (!kept.file) {
      row.id = EvidenceId::unread_file;
      row.text = fmt::format("{} {}: what is said about the image is what the report holds.", kept.path,
                             kept.why_not);
      row.arguments.emplace_back("why", kept.why_not);
    }
    out.push_back(std::move(row));
  }
  if (subject.object != nullptr) {
    const std::string& why_not = scene.files.why_not(*subject.object);
    if (!why_not.empty() && is_image_cause(cause) && scene.files.find(*subject.object) == nullptr) {
      out.push_back({EvidenceId::unread_file,
                     fmt::format("{} {}: what is said about it is what the report holds.",
                                 subject.object->path, why_not),
                     location(scene.report, subject.object->line),
                     {{"file", subject.object->path}, {"why", why_not}}});
    }
    for (Evidence& row : owner_evidence(scene, *subject.object)) out.push_back(std::move(row));
  }
}

void set_kernels(std::vector<std::string> mangled, std::uint64_t total, Finding& finding) {
  finding.kernels_total = std::max(total, std::uint64_t{mangled.size()});
  if (mangled.size() > core::kMaxKernels) {
    mangled.resize(core::kMaxKernels);
    finding.kernels_complete = false;
  }
  for (const std::string& name : mangled) finding.kernels.push_back(core::demangle(name));
}

void set_subject(const Scene& scene, const InReport& subject, Cause cause, Finding& finding) {
  finding.cause = cause;
  finding.severity = row_of(cause).severity;
  if (subject.object != nullptr) {
    finding.object = subject.object->path;
    finding.build_id = subject.object->build_id;
    if (const auto package = package_of(scene, *subject.object)) finding.package = package_name(*package);
  } else if (subject.caller && cause == Cause::driver_too_old) {
    finding.package = package_name(*subject.caller);
  }
  if (has_trait(cause, core::cause_trait::needs_arch) && subject.facts.gpu.cc)
    finding.need = sm_name(*subject.facts.gpu.cc);
  if (auto device = device_of(scene, subject.device)) finding.devices.push_back(std::move(*device));
  describe_images(subject.facts, finding);
}

// A static runtime shows the look-up that a launch begins with, which passes for one.
Near near_of(const FailureRecord& failure) {
  if (failure.stage == "launch" || failure.stage == "lookup") return Near::launch;
  return failure.stage == "load" ? Near::load : Near::call;
}

// Where the kernel stands in the source, as the first image that was compiled with line information tells.
core::Place kernel_source(const Facts::Images& images, const std::string& kernel) {
  core::Place out;
  if (!images.source) return out;
  for (const device_code::FileImage& image : images.source->read) {
    const auto found = image.lines.find(kernel);
    if (found == image.lines.end()) continue;
    out.file = found->second.file;
    out.line = found->second.line;
    break;
  }
  return out;
}

// Names of the report's gap, where the file itself could not be read. The answer: how many the module has at
// least, as far as the gap tells.
std::uint64_t add_gap_kernels(const InReport& subject, std::vector<std::string>& kernels, bool& complete) {
  if (subject.gap == nullptr || complete) return 0;
  for (const std::string& name : subject.gap->kernels) {
    if (!core::contains(kernels, name)) kernels.push_back(name);
  }
  complete = subject.gap->complete;
  return subject.gap->total.value_or(0);
}

void set_compiler(const CompilerFacts& compiler, Finding& finding) {
  for (const image::Arch arch : compiler.known) finding.have.push_back(name(image::ImageKind::ptx, arch));
  finding.need = name(image::ImageKind::ptx, compiler.asked);
  finding.headline = fmt::format(
      "{}{} does not compile for {}", compiler.name,
      compiler.version.known() ? fmt::format(" {}", image::to_name(compiler.version).view()) : std::string(),
      finding.need);
}

}  // namespace

void describe_images(const Facts& facts, Finding& finding) {
  std::vector<ImageFact> images = facts.images.list;
  std::ranges::stable_sort(images, [](const ImageFact& a, const ImageFact& b) {
    if (a.candidate.kind != b.candidate.kind)
      return a.candidate.kind == image::ImageKind::cubin || b.candidate.kind == image::ImageKind::ltoir;
    return a.candidate.arch < b.candidate.arch;
  });
  for (const ImageFact& fact : images) {
    const image::Candidate& candidate = fact.candidate;
    const ImageJudgment judgment = judge_image(fact, facts);
    core::ImageVerdict row;
    row.kind = image::to_name(candidate.kind);
    row.arch = name(candidate.kind, candidate.arch);
    if (candidate.isa.known() && candidate.kind == image::ImageKind::ptx) row.isa = name(candidate.isa);
    row.count = fact.count;
    row.fits = judgment.fits;
    row.reason = judgment.reason;
    row.candidate = candidate;
    row.would_fit = judgment.would_fit;
    if (!core::contains(finding.have, row.arch)) finding.have.push_back(row.arch);
    finding.images.push_back(std::move(row));
  }
}

Finding finding_of(const Scene& scene, const FailureRecord& failure, const InReport& subject,
                   const Diagnosis& diagnosis, const FindingSet& told) {
  Finding finding;
  set_subject(scene, subject, diagnosis.cause, finding);
  finding.confidence = std::clamp(diagnosis.match.confidence, 0.0, 0.99);
  finding.near = near_of(failure);
  finding.count = failure.count;
  finding.call_count = failure.count;
  if (const Layer* layer = shown_layer(failure)) {
    finding.code = layer->code;
    finding.code_name = code_name(*layer);
    finding.failed_call = layer->api;
  }
  if (const std::string_view of_code = headline_of_code(finding.code.value_or(0), finding.cause);
      !of_code.empty())
    finding.headline = of_code;
  if (finding.cause == Cause::stale_cache_artifact && !subject.cached.empty()) {
    finding.object = subject.cached;
    finding.build_id.clear();
  }
  if (finding.cause == Cause::nvrtc_arch_unsupported) set_compiler(*subject.facts.call.compiler, finding);
  const Finding* known = told.same_as(finding);
  finding.failed_kernel = core::demangle(failure.kernel);
  finding.kernel_source = kernel_source(subject.facts.images, failure.kernel);
  std::vector<std::string> kernels;
  if (!failure.kernel.empty()) kernels.push_back(failure.kernel);
  bool complete = false;
  std::uint64_t total = 0;
  if (has_trait(diagnosis.cause, core::cause_trait::needs_arch) && subject.facts.gpu.cc) {
    if (!subject.facts.images.source->read.empty()) kernels = lacking_kernels(subject.facts, failure.kernel);
    complete = subject.facts.images.source->complete;
    total = add_gap_kernels(subject, kernels, complete);
    finding.kernels_complete = complete;
  }
  set_kernels(std::move(kernels), total, finding);
  finding.failures.push_back(location(scene.report, failure.line));
  if (known == nullptr || !is_told(*known, finding)) {
    add_failure_evidence(scene, failure, finding, finding.evidence);
    add_driver_words(scene, failure, finding.evidence);
    add_ground(scene, subject, diagnosis, failure.line, finding.evidence);
    add_surroundings(scene, subject, diagnosis.cause, finding.evidence);
    finding.where = own_places(failure, scene.report, scene.files);
  }
  set_about(scene, subject, finding);
  return finding;
}

Finding latent_finding(const Scene& scene, const InReport& subject, std::vector<std::string> kernels,
                       bool complete, ModuleShare modules, std::optional<double> confidence) {
  Finding finding;
  set_subject(scene, subject, Cause::latent_gap, finding);
  const std::uint64_t total = add_gap_kernels(subject, kernels, complete);
  finding.kernels_complete = complete;
  set_kernels(std::move(kernels), total, finding);
  finding.confidence = confidence.value_or(subject.facts.images.scope == ImageScope::module ? 0.95 : 0.7);
  const image::ShortName gpu = image::to_name(*subject.facts.gpu.cc);
  std::string why =
      fmt::format("{} was loaded or registered, and nothing in it fits {}; nothing has failed yet",
                  object_text(subject), gpu.view());
  if (modules.served != 0) {
    const std::string share =
        fmt::format("{} of its {} modules", modules.lacking, modules.lacking + modules.served);
    finding.headline = fmt::format("{}: {} without code for {}; no failure is recorded for it",
                                   core::basename_of(finding.object), share, finding.need);
    why =
        fmt::format("{0} was loaded or registered, with nothing that fits {2} in {1}; nothing has failed yet",
                    object_text(subject), share, gpu.view());
  }
  add_ground(scene, subject, {Cause::latent_gap, {finding.confidence, why}},
             subject.object != nullptr ? subject.object->line : 0, finding.evidence);
  // Published packages keep some kernels for some GPUs alone, and choose; a file of the user's own is another
  // matter, and so is a GPU that somebody asked about.
  finding.is_by_design =
      modules.served > modules.lacking && !finding.package.empty() && subject.device != nullptr;
  if (finding.is_by_design) {
    finding.remarks.push_back(
        "Most of the file's modules have code for this GPU: the others may be for GPUs of another kind by "
        "design.");
  } else {
    set_about(scene, subject, finding);
  }
  return finding;
}

}  // namespace kshim::diagnose
