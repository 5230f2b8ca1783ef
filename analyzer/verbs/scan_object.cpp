// SPDX-License-Identifier: Apache-2.0
#include <elf.h>

#include "analyzer/core/text.h"
#include "analyzer/device_code/elf_file.h"
#include "analyzer/diagnose/about.h"
#include "analyzer/diagnose/failure_finding.h"
#include "analyzer/verbs/scan_parts.h"
#include "kshim/report/hmac.h"

namespace kshim::verbs {
using core::Cause;
using core::EvidenceId;
using core::Finding;
using core::Severity;
using device_code::Damage;
using device_code::DeviceCode;
using device_code::HostFormat;
using diagnose::ByDesign;
using diagnose::Facts;
using diagnose::ImageFact;
using diagnose::KernelTable;
using diagnose::KernelUse;
using diagnose::TargetVerdict;
using input::FileKind;

namespace {

std::string format_of(const DeviceCode& code, Bytes bytes, FileKind kind) {
  if (kind == FileKind::data) return "data";
  if (code.host != HostFormat::none) return (code.host == HostFormat::elf ? "ELF " : "PE ") + code.machine;
  switch (image::identify(bytes)) {
    case image::BlobKind::cubin:
      return "cubin";
    case image::BlobKind::ptx:
      return "PTX";
    case image::BlobKind::ltoir:
      return "LTO-IR";
    default:
      return "fatbin";
  }
}

std::vector<ScannedKernel> list_kernels(const KernelTable& table) {
  std::vector<ScannedKernel> out;
  out.reserve(table.kernels.size());
  for (const auto& [name, coverage] : table.kernels) {
    ScannedKernel kernel{name, core::demangle(name), {}};
    std::vector<KernelUse> uses = coverage.uses;
    // Cubins first, each kind by architecture.
    std::ranges::sort(uses, {}, [&](const KernelUse& use) {
      const KernelTable::Label& label = table.labels[use.label];
      return std::tuple(label.kind != image::ImageKind::cubin, label.arch);
    });
    for (const KernelUse& use : uses) {
      const KernelTable::Label& label = table.labels[use.label];
      kernel.images.push_back({std::string(image::to_name(label.kind, label.arch).view()), use.registers,
                               use.shared_bytes, use.local_bytes, use.max_threads, use.code_bytes});
    }
    out.push_back(std::move(kernel));
  }
  std::ranges::sort(out, {}, &ScannedKernel::name);
  return out;
}

std::vector<ModuleSize> largest_of(const DeviceCode& code, const KernelTable& table) {
  constexpr std::ptrdiff_t kKept = 10;
  std::vector<ModuleSize> out;
  for (std::size_t index = 0; index < code.modules.size(); ++index) {
    ModuleSize& size = out.emplace_back(ModuleSize{.offset = code.modules[index].offset, .kernel = {}});
    if (index < table.first.size()) size.kernel = table.first[index];
    each_image_of(code.modules[index], [&](std::uint32_t i) {
      ++size.images;
      size.stored += code.images[i].payload.size();
      size.bytes += code.images[i].bytes;
    });
  }
  const auto end = out.begin() + std::min<std::ptrdiff_t>(kKept, std::ssize(out));
  std::partial_sort(out.begin(), end, out.end(), [](const ModuleSize& a, const ModuleSize& b) {
    return std::tuple(b.stored, a.offset) < std::tuple(a.stored, b.offset);
  });
  out.erase(end, out.end());
  return out;
}

// A damaged file that shows no trace of device code is no worse than any other broken file.
bool is_of_device_code(const DeviceCode& code) {
  return code.host == HostFormat::none || code.fatbins != 0 || !code.images.empty() ||
         std::ranges::any_of(code.damage, [](const Damage& each) { return each.of != Damage::Of::host; });
}

input::ReadNote note_of(const ScannedObject& object, const Damage& damage) {
  return {object.name(), fmt::format("at offset {}, {}", damage.offset, damage.what)};
}

using image::ImageKind;
using image::Suffix;

// The images of the modules that lack something, each kind of image once.
std::vector<ImageFact> images_of(const DeviceCode& code, const std::vector<std::uint32_t>& modules) {
  std::vector<ImageFact> out;
  const auto add = [&](const device_code::CodeImage& image) {
    const auto at = std::ranges::find_if(
        out, [&](const ImageFact& row) { return device_code::same_program(row.candidate, image.candidate); });
    if (at != out.end()) {
      ++at->count;
      return;
    }
    out.push_back({image.candidate, image.compression, 1, {}, {}});
  };
  for (const std::uint32_t index : modules)
    each_image_of(code.modules[index], [&](std::uint32_t i) { add(code.images[i]); });
  return out;
}

// Why code for other GPUs only is no gap, as a sentence.
std::string by_design_text(ByDesign by_design, const std::string& file) {
  switch (by_design) {
    case ByDesign::no:
      break;
    case ByDesign::probing_library: {
      const auto& library = *data::find_probing_library(file);
      return fmt::format("That is how {}* is made: it {}.", library.prefix, library.habit);
    }
    case ByDesign::loaded_by_choice:
      return "The program loads these modules by itself, each made for one GPU; what the CUDA runtime "
             "registers is there.";
    case ByDesign::locked:
      return "All of it is locked to one GPU or family by its suffix: code beside it is for the others.";
  }
  return {};
}

struct ContainerPlace {
  std::string object;   ///< the file, or the innermost member
  std::string archive;  ///< the .a that it is a member of; empty otherwise
};

ContainerPlace place_of(const ScannedObject& object) {
  const auto archive = [](std::string_view name) { return name.ends_with(".a") || name.ends_with(".lib"); };
  if (object.member.empty()) return {object.path, archive(object.path) ? object.path : ""};
  const std::size_t inner = object.member.rfind('!');  // "lib/libfoo.a!foo.o" of a wheel
  if (inner == std::string::npos) return {object.member, archive(object.path) ? object.path : ""};
  const std::string outer = object.member.substr(0, inner);
  return {object.member.substr(inner + 1), archive(outer) ? outer : ""};
}

// The images that do hold kernels which the target lacks, by name.
std::vector<std::string> holders(const ObjectFacts& at, image::ComputeCapability cc) {
  std::vector<std::string> out;
  if (at.kernels == nullptr) return out;
  for (std::size_t target = 0; target < at.coverage.targets.size(); ++target) {
    if (at.coverage.targets[target].target.cc != cc) continue;
    std::vector<bool> holds(at.kernels->labels.size());
    for (const auto& [name, coverage] : at.kernels->kernels) {
      if ((coverage.served >> target & 1) != 0) continue;
      for (const KernelUse& use : coverage.uses) holds[use.label] = true;
    }
    for (std::size_t label = 0; label < holds.size(); ++label) {
      const KernelTable::Label& row = at.kernels->labels[label];
      if (holds[label]) out.emplace_back(image::to_name(row.kind, row.arch).view());
    }
    break;
  }
  return out;
}

void set_about(const ObjectFacts& at, const Facts& facts, Finding& finding) {
  Facts input = facts_about(finding, facts);
  ContainerPlace place = place_of(at.object);
  input.file.path = std::move(place.object);
  input.file.archive = std::move(place.archive);
  input.file.bare = at.code.host == HostFormat::none;
  input.file.relocatable = std::ranges::any_of(
      at.code.images, [](const device_code::CodeImage& image) { return image.relocatable; });
  input.file.shared_library = at.shared_library;
  if (finding.cause == Cause::latent_gap && !at.object.images.empty())
    input.images.have = core::mapped(at.object.images, &device_code::ImageCount::candidate);
  complete_file(at.object.path, at.object.member.empty() ? at.object.path : std::string(), input);
  owner::Package package = at.owner.package;
  if (package.name.empty()) {
    package.name = at.object.package.name;
    package.version = at.object.package.version;
    package.manager = at.object.package.installer;
  }
  if (!package.name.empty()) {
    const input::PackageRecord owner = diagnose::record_of(package, 0);
    set_package(owner, &owner, input);
  }
  if (at.object.path.ends_with(".whl")) input.file.origin = diagnose::Origin::python_extension;
  for (std::size_t i = 0; i < at.coverage.targets.size(); ++i)
    if (at.coverage.targets[i].target.cc == facts.gpu.cc)
      input.file.linked_library = at.coverage.makers[i].library;
  input.process.python_env = at.owner.python;
  for (const TargetVerdict& row : at.coverage.targets)
    if (row.target.cc != facts.gpu.cc) input.gpu.others.push_back(row.target.cc);
  if (finding.cause == Cause::latent_gap && facts.gpu.cc) {
    input.images.holders = holders(at, *facts.gpu.cc);
    input.images.guarded =
        at.kernels != nullptr && std::ranges::any_of(at.coverage.targets, [&](const TargetVerdict& row) {
          return row.target.cc == *facts.gpu.cc && row.lacking == 0;
        });
  }
  finding.about = std::make_shared<const Facts>(std::move(input));
}

// Kernels that no module of the file runs on the target.
std::vector<std::string> unserved_kernels(const KernelTable& table, std::size_t target) {
  std::vector<std::string> out;
  for (const auto& [name, coverage] : table.kernels)
    if ((coverage.served >> target & 1) == 0) out.push_back(name);
  std::ranges::sort(out);
  return out;
}

Finding start(const ObjectFacts& at, Cause cause, Severity severity) {
  Finding finding;
  finding.cause = cause;
  finding.severity = severity;
  finding.object = at.object.name();
  finding.package = at.object.package;
  return finding;
}

void describe(const Facts& facts, const TargetVerdict& verdict, Finding& finding) {
  describe_images(facts, finding);
  finding.need = sm_name(verdict.target.cc);
  finding.devices = {core::target_device(verdict.target.cc)};
}

// Nothing in the file runs on the target: the cause is that of a failure to come.
Finding whole_file(const ObjectFacts& at, const TargetVerdict& verdict, const Facts& facts) {
  const diagnose::Diagnosis diagnosis = diagnosis_of(facts);
  Finding finding = start(at, diagnosis.cause == Cause::unknown ? Cause::no_image_for_arch : diagnosis.cause,
                          Severity::error);
  finding.confidence = 0.97;
  describe(facts, verdict, finding);
  finding.evidence.push_back({EvidenceId::rule, diagnosis.match.because + ".", {at.object.name()}});
  return finding;
}

std::string runs(std::uint64_t count, std::string_view word) {
  return fmt::format("{} {}", core::counted(count, word), count == 1 ? "runs" : "run");
}

// Static libraries of NVIDIA have code for every GPU: a file whose own kernels all lack it is not `none`.
bool is_nearly_all(std::uint64_t lacking, std::uint64_t of) { return lacking * 20 >= of * 19; }

Finding part_of_file(const ObjectFacts& at, const TargetVerdict& verdict, const Facts& facts,
                     const std::vector<std::string>* kernels) {
  Finding finding = start(at, Cause::latent_gap, Severity::warning);
  describe(facts, verdict, finding);
  const std::uint64_t served = verdict.sass + verdict.jit;
  if (kernels != nullptr ? is_nearly_all(kernels->size(), at.kernels->kernels.size())
                         : is_nearly_all(verdict.lacking, served + verdict.lacking))
    finding.severity = Severity::error;
  if (kernels != nullptr) {
    finding.confidence = 0.9;
    finding.headline = gap_headline(kernels->size(), at.kernels->kernels.size(), "kernel");
    finding.kernels_total = kernels->size();
    finding.evidence.push_back(
        {EvidenceId::kernels_served,
         fmt::format("{} on {}; these are in no image that does.",
                     runs(at.kernels->kernels.size() - kernels->size(), "kernel"), finding.need),
         {at.object.name()}});
  } else {
    finding.confidence = 0.5;
    finding.kernels_complete = false;
    finding.headline =
        gap_headline(verdict.lacking, at.coverage.modules, "module") +
        (diagnosis_of(facts).cause == Cause::driver_too_old_for_image ? " that this driver reads" : "");
    finding.evidence.push_back(
        {EvidenceId::modules_served,
         fmt::format("{} on {}, {} {} not; kshim scan --kernels says which kernels these are.",
                     runs(served, "module"), finding.need, verdict.lacking,
                     verdict.lacking == 1 ? "does" : "do"),
         {at.object.name()},
         {{"served", std::to_string(served)}, {"lacking", std::to_string(verdict.lacking)}}});
  }
  return finding;
}

std::optional<Finding> gap(ObjectFacts& at, std::size_t target, image::Version driver) {
  const TargetVerdict& verdict = at.coverage.targets[target];
  Facts facts;
  facts.gpu.cc = verdict.target.cc;
  facts.driver.cuda = driver;
  facts.driver.runtime = at.coverage.runtime;
  const diagnose::Missed missed = diagnose::missed_modules(
      at.object.name(), at.code, at.coverage.lacking[target], verdict.sass + verdict.jit);
  facts.images.list =
      images_of(at.code, missed.modules.empty() ? at.coverage.lacking[target] : missed.modules);
  facts.images.scope = diagnose::ImageScope::module;
  facts.images.toolkit = at.coverage.makers[target].toolkit;
  for (ImageFact& image : facts.images.list) image.toolkit = facts.images.toolkit;
  std::optional<Finding> finding;
  std::vector<std::string> kernels;
  if (at.kernels != nullptr) {
    kernels = unserved_kernels(*at.kernels, target);
    at.object.targets[target].kernels_lacking = kernels.size();
  }
  if (verdict.nothing_fits()) {
    finding = whole_file(at, verdict, facts);
  } else {
    // Names decide where they are known: what another module runs under the same name lacks nothing.
    const bool lacking = at.kernels != nullptr ? !kernels.empty() : verdict.lacking != 0;
    if (!lacking) return std::nullopt;
    if (facts.images.list.empty())  // every module is served, but by an image without the kernel
      for (const device_code::ImageCount& row : at.object.images)
        facts.images.list.push_back(
            {.candidate = row.candidate, .count = row.count, .has_kernel = {}, .toolkit = {}});
    finding = part_of_file(at, verdict, facts, at.kernels != nullptr ? &kernels : nullptr);
    if (missed.by_design != ByDesign::no) {
      at.object.targets[target].picks = true;
      finding->severity = Severity::info;
      finding->remarks.push_back(by_design_text(missed.by_design, at.object.name()));
      return finding;
    }
  }
  for (const std::string& name : kernels) finding->kernels.push_back(core::demangle(name));
  finding->kernels_complete = at.kernels != nullptr && at.kernels->complete;
  set_about(at, facts, *finding);
  return finding;
}

Finding damage(const ObjectFacts& at, std::vector<std::string> clauses) {
  constexpr std::size_t kNamed = 8;
  Finding finding = start(at, Cause::invalid_image, Severity::error);
  finding.confidence = 0.9;
  finding.count = clauses.size();
  finding.headline = fmt::format("{}: device code in it is damaged", core::basename_of(finding.object));
  const std::size_t more = clauses.size() > kNamed ? clauses.size() - kNamed : 0;
  clauses.resize(clauses.size() - more);
  for (std::string& clause : clauses)
    finding.evidence.push_back({EvidenceId::damage, std::move(clause) + ".", {at.object.name()}});
  if (more != 0)
    finding.evidence.push_back(
        {EvidenceId::more, fmt::format("And {} more like these.", more), {at.object.name()}});
  set_about(at, {}, finding);
  return finding;
}

Finding finding_of(const data::GpuRow& gpu, image::Version driver) {
  const std::string target = sm_name(gpu.cc);
  const std::string first = name(gpu.first_toolkit);
  Finding finding;
  finding.cause = Cause::driver_too_old;
  finding.severity = Severity::error;
  finding.confidence = 0.97;
  finding.headline = fmt::format("a driver for CUDA {} does not serve {}: CUDA {} is the first that knows it",
                                 name(driver), target, first);
  finding.devices = {core::target_device(gpu.cc)};
  finding.need = target;
  finding.evidence.push_back({EvidenceId::first_toolkit,
                              fmt::format("CUDA {} is the first toolkit that builds for {}, and the driver "
                                          "that came with it is the first for such GPUs.",
                                          first, target),
                              {},
                              {{"cuda", first}, {"architecture", target}}});
  Facts at;
  at.cause = finding.cause;
  at.gpu.cc = gpu.cc;
  at.driver.cuda = driver;
  finding.about = std::make_shared<const Facts>(std::move(at));
  return finding;
}

}  // namespace

std::vector<std::string> ScannedKernel::archs() const { return core::mapped(images, &KernelNeeds::arch); }

std::optional<ObjectResult> scan_object(ScannedObject object, Bytes bytes, const ScanRequest& options,
                                        FileKind kind) {
  DeviceCode code =
      kind == FileKind::data ? device_code::search_device_code(bytes) : device_code::find_device_code(bytes);
  if (code.images.empty() && code.damage.empty()) return std::nullopt;
  if (!is_of_device_code(code)) {
    ObjectResult result;
    result.notes.push_back(note_of(object, code.damage[0]));
    return result;
  }
  // An object of `nvcc -dc` has parts only: what a linker would make of them is one module.
  if (code.modules.empty() && !code.images.empty())
    code.modules.push_back({.first = 0,
                            .count = static_cast<std::uint32_t>(code.images.size()),
                            .offset = code.images[0].offset,
                            .parts = {}});
  KernelTable table;
  const auto facts = code.host == HostFormat::elf ? device_code::elf_facts(bytes) : std::nullopt;
  const diagnose::FileCoverage coverage =
      cover(code, options.targets, options.driver, options.kernels ? &table : nullptr,
            facts ? facts->needed : std::vector<std::string>());
  object.build_id = code.build_id;
  if (options.sha256) {
    const auto hash = report::sha256(kshim::text_of(bytes));
    object.sha256.assign(hash.data(), hash.size());
  }
  Owner owner;
  if (object.package.empty() && object.member.empty() && options.owner) {
    owner = options.owner(object.path);
    object.package = package_name(owner.package);
    object.requested = owner.package.requested;
  }
  object.format = format_of(code, bytes, kind);
  object.bytes = bytes.size();
  object.fatbins = code.fatbins;
  object.modules = code.modules.size();
  object.kernel_modules = coverage.modules;
  object.images = count_images(code);
  object.targets = coverage.targets;
  object.runtime = coverage.runtime;
  if (options.kernels) object.kernels = list_kernels(table);
  object.largest = largest_of(code, table);
  const auto type = read_le<std::uint16_t>(bytes, offsetof(Elf64_Ehdr, e_type));
  const std::string name = object.name();
  const bool library = code.host == HostFormat::pe
                           ? !name.ends_with(".exe")
                           : type.ok() && *type == ET_DYN && name.find(".so") != std::string::npos;
  ObjectResult result;
  result.findings = findings_of({object, code, coverage, owner, options.kernels ? &table : nullptr, library},
                                options.driver);
  for (const Damage& damage : code.damage)
    if (damage.of == Damage::Of::unknown_kind) result.notes.push_back(note_of(object, damage));
  result.object = std::move(object);
  result.loose = code.host == HostFormat::none;
  result.has_device_code = true;
  return result;
}

std::string gap_headline(std::uint64_t part, std::uint64_t all, std::string_view word, bool at_most) {
  return fmt::format("{{file}}: {}{} of {} {} no code for {{gpu}}", at_most ? "up to " : "", part,
                     core::counted(all, word), part == 1 ? "has" : "have");
}

std::vector<Finding> findings_of(ObjectFacts at, image::Version driver) {
  std::vector<Finding> out;
  std::vector<std::string> clauses;
  for (const Damage& row : at.code.damage)
    if (row.of != Damage::Of::unknown_kind)
      clauses.push_back(fmt::format("at offset {}, {}", row.offset, row.what));
  clauses.insert(clauses.end(), at.coverage.damage.begin(), at.coverage.damage.end());
  if (!clauses.empty()) out.push_back(damage(at, std::move(clauses)));
  for (std::size_t target = 0; target < at.coverage.targets.size(); ++target) {
    if (auto finding = gap(at, target, driver)) out.push_back(std::move(*finding));
  }
  return out;
}

std::vector<Finding> old_driver_findings(const std::vector<image::Arch>& targets, image::Version driver) {
  std::vector<Finding> out;
  if (!driver.known()) return out;
  std::set<image::ComputeCapability> told;
  for (const image::Arch& target : targets) {
    const data::GpuRow* gpu = data::find_gpu(target.cc);
    if (gpu != nullptr && driver < gpu->first_toolkit && told.insert(target.cc).second)
      out.push_back(finding_of(*gpu, driver));
  }
  return out;
}

}  // namespace kshim::verbs
