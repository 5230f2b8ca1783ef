// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/scene.h"

#include <array>

#include "analyzer/core/text.h"
#include "analyzer/data/knowledge.h"
#include "analyzer/diagnose/coverage.h"
#include "analyzer/diagnose/places.h"
#include "kshim/image/compute_capability.h"
#include "kshim/image/decompress.h"

namespace kshim::diagnose {
using core::contains;
using device_code::FileImage;
using device_code::FileModule;
using device_code::ObjectFile;
using input::DeviceRecord;
using input::FailureRecord;
using input::Layer;
using input::ObjectRecord;
using input::Report;

namespace {

using image::ComputeCapability;

// Another library read the error of this query, so the library that made the query had finished with it.
bool asked_by_another(const Scene& scene, const FailureRecord& failure) {
  if (failure.stage != "query") return false;
  return std::ranges::any_of(scene.report.reads, [&](const input::ReadRecord& read) {
    return read.failure == failure.id && read.object != failure.object;
  });
}

/// Whether many modules of the file were refused, and others of it have loaded.
bool is_of_collection(const Scene& scene, const FailureRecord& failure, const InReport& subject) {
  constexpr std::ptrdiff_t kMany = 8;
  constexpr std::size_t kMostRead = 4096;
  const bool asks = failure.stage == "load" || failure.stage == "query" ||
                    (failure.stage == "lookup" && subject.facts.call.kept_by_runtime);
  if (!asks || subject.object == nullptr) return false;
  const std::uint64_t id = subject.object->id;
  const std::span failures = std::span(scene.report.failures);
  const auto refused = std::ranges::count_if(
      failures.first(std::min(failures.size(), kMostRead)),
      [&](const FailureRecord& row) { return row.stage == "load" && row.object == id; });
  return refused >= kMany && std::ranges::any_of(scene.report.modules, [&](const input::ModuleRecord& row) {
           return row.object == id && row.result == 0;
         });
}

// True for a probe: no launch of the library's code failed, and either the program continued or the file
// does have something for this GPU.
bool went_on(const Scene& scene, const FailureRecord& failure, const InReport& subject) {
  const auto id_of = [](const auto* row) { return row != nullptr ? std::optional(row->id) : std::nullopt; };
  if (scene.index.launch_failed(id_of(subject.object), id_of(subject.module))) return false;
  // A library queries GPU limits and driver features to choose a code path, so an error is a normal answer
  // however the program ended.
  const bool asked_for_limits =
      failure.stage == "query" && std::ranges::any_of(failure.layers, [](const Layer& layer) {
        return layer.code == kInvalidValue || code_has(layer.code, code_trait::limit);
      });
  if (asked_for_limits) return true;
  // A program may end normally because a file is missing, and say so itself.
  const bool missing_file = std::ranges::any_of(
      failure.layers, [](const Layer& layer) { return layer.code == core::kFileNotFound; });
  if (missing_file)
    return (ended_well(scene) && ending_of(scene.report, scene.run).known()) ||
           std::ranges::any_of(scene.report.modules, [&](const input::ModuleRecord& module) {
             return module.result == 0 && module.line > failure.line;
           });
  if (ended_well(scene) || asked_by_another(scene, failure)) return true;
  if (subject.object == nullptr || !subject.facts.gpu.cc) return false;
  const ObjectFile* file = scene.files.find(*subject.object);
  if (file == nullptr) return false;
  const auto counts = file->image_counts();
  return std::ranges::any_of(counts, [&](const device_code::ImageCount& row) {
    return image::judge(row.candidate, {*subject.facts.gpu.cc, subject.facts.driver.cuda, {}}).fits;
  });
}

bool asks_for_variable(const FailureRecord& failure) {
  constexpr std::array<std::string_view, 3> kCalls = {"cuModuleGetGlobal_v2", "cuLibraryGetGlobal",
                                                      "cuLibraryGetManaged"};
  return std::ranges::any_of(failure.layers, [&](const Layer& layer) {
    return std::ranges::find(kCalls, layer.api) != kCalls.end();
  });
}

// The runtime asks for the names that its compiler registered. A program that asks by itself may have the
// name as the source has it, which is not the mangled one.
void add_names(const Scene& scene, const std::string& kernel, InReport& subject) {
  if (kernel.empty()) return;
  Facts& facts = subject.facts;
  const ObjectFile* file = subject.object != nullptr ? scene.files.find(*subject.object) : nullptr;
  const bool bare = facts.file.loose || (file != nullptr && file->is_bare());
  facts.call.by_name = (bare || !kernel.starts_with("_Z")) && !facts.call.has(98);
  if (!facts.images.source || !facts.images.source->complete) return;
  const std::string base = core::base_name(core::demangle(kernel));
  for (const FileImage& image : facts.images.source->read) {
    for (const std::string& name : image.kernels) {
      if (contains(facts.images.kernels, name)) continue;
      facts.images.kernels.push_back(name);
      if (name != kernel && core::base_name(core::demangle(name)) == base) facts.images.alike.push_back(name);
    }
  }
}

void find_in_caches(const Scene& scene, InReport& subject) {
  const auto& environment = scene.report.process.env;
  std::optional<input::CachedCode> found;
  if (!is_of_this_machine(scene.report))
    return;  // the caches on this machine say nothing about another machine's files
  if (subject.facts.file.loose && subject.module != nullptr) {
    const auto hash = core::parse_number<std::uint64_t>(subject.module->content_hash, 16);
    if (hash && subject.module->size)
      found = scene.files.caches().find(*hash, *subject.module->size, environment);
  } else if (subject.object != nullptr) {
    // Only bare device code: such caches do not hold programs or libraries.
    const ObjectFile* file = scene.files.find(*subject.object);
    if (file != nullptr && file->is_bare())
      found = input::CacheSearch::holding(subject.object->path, environment);
  }
  if (!found) return;
  subject.cached = std::move(found->file);
  subject.facts.file.cache = found->cache->who;
  subject.facts.file.cache_entry = std::move(found->entry);
}

bool driver_found(const Report& report) {
  return report.driver || std::ranges::any_of(report.libraries, [](const input::LibraryRecord& row) {
           return row.soname == "libcuda.so.1";
         });
}

// The only shared runtime of the process, where it was one that failed.
image::Version failing_runtime(const Report& report, const FailureRecord& failure) {
  constexpr std::string_view kSoname = "libcudart.so.";
  const bool runtime =
      std::ranges::any_of(failure.layers, [](const Layer& layer) { return layer.layer == "runtime"; });
  image::Version out;
  for (const input::LibraryRecord& row : report.libraries) {
    if (!runtime || !row.soname.starts_with(kSoname)) continue;
    const std::string digits = row.soname.substr(kSoname.size());
    const auto version = image::parse_version(!contains(digits, '.') ? digits + ".0" : digits);
    if (out.known() || !version) return {};
    out = *version;
  }
  return out;
}

// The innermost frame of an installed Python package that is not NVIDIA's own.
std::optional<input::PackageRecord> caller_package(const Scene& scene, const FailureRecord& failure) {
  for (const input::NativeFrame& frame : failure.native) {
    const auto known = std::ranges::find(scene.report.objects, frame.object, &ObjectRecord::path);
    auto package = package_of(scene, known != scene.report.objects.end()
                                         ? *known
                                         : input::object_record(frame.object, frame.build_id));
    if (package && (package->manager == "pip" || package->manager == "conda") &&
        !data::ProjectName(package->name).is_nvidias())
      return package;
  }
  return std::nullopt;
}

// A driver that is too old for the runtime is not a file's fault: name the package that ships the runtime.
bool is_refused_driver(const FailureRecord& failure) {
  return failure.object == std::nullopt && std::ranges::any_of(failure.layers, [](const Layer& layer) {
           return layer.layer == "runtime" && layer.code == core::kInsufficientDriver;
         });
}

std::optional<CompilerFacts> compiler_of(const FailureRecord& failure) {
  const auto arch = image::parse_arch(failure.asked);
  if (failure.layers.empty() || !arch) return std::nullopt;
  const std::string& layer = failure.layers.front().layer;
  if (layer != "nvrtc" && layer != "nvjitlink") return std::nullopt;
  CompilerFacts out;
  out.name = layer == "nvrtc" ? "NVRTC" : "nvJitLink";
  out.asked = *arch;
  // NVJITLINK_ERROR_UNRECOGNIZED_ARCH, _UNSUPPORTED_ARCH; NVRTC has "invalid option" for it, and few others.
  out.by_code = failure.layers.front().name.ends_with("_ARCH") || layer == "nvrtc";
  out.version = image::parse_version(failure.compiler).value_or(image::Version{});
  for (const std::string& known : failure.known) {
    if (const auto known_arch = image::parse_arch(known)) out.known.push_back(*known_arch);
  }
  std::ranges::sort(out.known);
  return out;
}

using image::Candidate;
using image::ImageKind;

// The PTX ISA that the list of the whole file has for an architecture, where it has one only.
image::Version isa_of(std::string_view arch, const ObjectRecord* object) {
  image::Version isa;
  if (object == nullptr || !object->images) return isa;
  for (const input::ImageEntry& entry : *object->images) {
    if (entry.arch != arch) continue;
    const auto version = image::parse_version(entry.isa).value_or(image::Version{});
    if (isa.known() && isa != version) return {};
    isa = version;
  }
  return isa;
}

/// Images, while they are read.
struct ReadImages {
  Facts::Images images;
  ImageSource source;
};

void set_source(ImageScope scope, std::string_view clause, std::uint32_t line, ReadImages& out) {
  if (out.images.list.empty()) return;
  out.images.scope = scope;
  out.source.clause = clause;
  out.source.line = line;
}

void from_gap(const input::GapRecord& gap, const ObjectRecord* object, ReadImages& out) {
  for (const std::string& name : gap.have) {
    const auto candidate = candidate_of(name);
    if (!candidate) continue;
    out.images.list.push_back({.candidate = *candidate});
    out.images.list.back().candidate.isa = isa_of(name, object);
  }
  set_source(ImageScope::module, "as the shim saw it", gap.line, out);
}

// If an image fits, there is no gap, and only the selected image is known.
void from_selection(const input::ModuleRecord& module, ReadImages& out) {
  const auto candidate = candidate_of(module.selected);
  if (!candidate) return;
  out.images.toolkit = image::parse_version(module.toolkit).value_or(image::Version{});
  out.images.list.push_back({.candidate = *candidate, .toolkit = out.images.toolkit});
  set_source(ImageScope::module, "as the shim saw it", module.line, out);
}

void from_report(const ObjectRecord& object, ReadImages& out) {
  if (!object.images) return;
  for (const input::ImageEntry& entry : *object.images) {
    if (const auto candidate = candidate_of(entry.arch, entry.isa))
      out.images.list.push_back({.candidate = *candidate, .count = entry.count});
  }
  set_source(object.fatbins == 1 ? ImageScope::module : ImageScope::file, "as the shim listed the file",
             object.line, out);
}

ImageFact fact_of(const FileImage& image) {
  return {.candidate = image.candidate, .compression = image.compression, .toolkit = image.toolkit};
}

bool is_complete(const FileModule& module) {
  return std::ranges::all_of(module.images, [](const FileImage& image) {
    return image.kernels_read || image.candidate.kind == ImageKind::ltoir;
  });
}

void from_module(FileModule module, std::uint32_t line, const std::string& kernel, ReadImages& out,
                 std::string_view source = "read from the file") {
  out.images.damage = std::move(module.damage);
  for (const FileImage& image : module.images) {
    out.images.list.push_back(fact_of(image));
    if (image.kernels_read && !kernel.empty())
      out.images.list.back().has_kernel = contains(image.kernels, kernel);
    out.images.toolkit = std::max(out.images.toolkit, image.toolkit);
  }
  out.source.complete = is_complete(module);
  out.source.read = std::move(module.images);
  set_source(ImageScope::module, source, line, out);
}

void from_counts(const std::vector<device_code::ImageCount>& counts, const ObjectRecord& object,
                 std::size_t modules, ReadImages& out) {
  for (const device_code::ImageCount& row : counts)
    out.images.list.push_back({.candidate = row.candidate, .count = row.count});
  set_source(modules == 1 ? ImageScope::module : ImageScope::file, "read from the whole file", object.line,
             out);
}

using image::Suffix;

image::Platform plain(const Facts& facts) { return {*facts.gpu.cc, facts.driver.cuda, {}}; }

// The same image as if it were neither arch- nor family-specific, and of an old PTX ISA.
Candidate base_of(Candidate image) {
  image.arch.suffix = Suffix::none;
  image.isa = {};
  return image;
}

std::string why_not_suffix(const Candidate& image) {
  if (image.arch.suffix == Suffix::a)
    return fmt::format("runs on {} and on nothing else", name(image.arch.cc));
  return fmt::format("runs in the family of {} only", name(image.arch.cc));
}

std::string why_not_cubin(const Candidate& image, ComputeCapability device) {
  if (image.arch.suffix != Suffix::none) return why_not_suffix(image);
  const ComputeCapability cc = image.arch.cc;
  if (cc.major != device.major && image::is_tegra(cc)) return fmt::format("runs on {} GPUs only", name(cc));
  if (cc.major != device.major && cc.minor == 0) return fmt::format("runs on {}.x GPUs only", cc.major);
  if (cc.major != device.major || cc.minor > device.minor)
    return fmt::format("runs on {} and later {}.x GPUs only", name(cc), cc.major);
  return "desktop and Jetson code do not mix";
}

std::string why_not_ptx(const Candidate& image, const Facts& facts) {
  if (image.arch.suffix != Suffix::none && !judge(Candidate{image.kind, image.arch, {}}, plain(facts)).fits) {
    return why_not_suffix(image);
  }
  if (!judge(base_of(image), plain(facts)).fits)
    return fmt::format("compiles for {} and later GPUs only", name(image.arch.cc));
  return fmt::format("PTX {} is newer than the driver reads ({})", name(image.isa),
                     name(image::ptx_isa_of_cuda(facts.driver.cuda)));
}

// What is remembered, in bytes of names; beyond, a file is read again.
constexpr std::size_t kMaxNames = std::size_t{64} << 20;
constexpr std::size_t kMaxKnown = 16384;

struct Unserved {
  std::vector<FileModule> modules;
  std::size_t served = 0;
  bool complete = true;  ///< every payload of them could be read
};

Unserved unserved_modules(std::string_view path, const ObjectFile& file, ComputeCapability cc,
                          image::Version driver) {
  Unserved out;
  const FileCoverage coverage = cover(file.code(), {{cc, image::Suffix::none}}, driver, nullptr);
  out.served = coverage.targets[0].sass + coverage.targets[0].jit;
  std::uint64_t budget = kMaxPayload;
  for (const std::uint32_t index :
       missed_modules(path, file.code(), coverage.lacking[0], out.served).modules) {
    FileModule module = file.module(index, budget);
    out.complete = out.complete && is_complete(module);
    if (module.has_kernels()) out.modules.push_back(std::move(module));
  }
  return out;
}

FileGap summary_of(const Unserved& unserved) {
  FileGap out;
  out.complete = unserved.complete;
  out.modules = {unserved.modules.size(), unserved.served};
  std::set<std::string> kernels;
  std::map<device_code::ProgramKey, std::size_t> known;
  for (const FileModule& module : unserved.modules) {
    for (const FileImage& image : module.images) {
      kernels.insert(image.kernels.begin(), image.kernels.end());
      out.toolkit = std::max(out.toolkit, image.toolkit);
      const auto [at, first] = known.try_emplace(device_code::program_of(image.candidate), out.images.size());
      if (first)
        out.images.push_back(fact_of(image));
      else
        ++out.images[at->second].count;
    }
  }
  out.kernels.assign(kernels.begin(), kernels.end());
  return out;
}

}  // namespace

std::optional<ComputeCapability> cc_of(const Scene& scene, const DeviceRecord* device) {
  if (scene.options.assume_cc) return scene.options.assume_cc;
  const auto parse = [](const DeviceRecord& row) -> std::optional<ComputeCapability> {
    const auto arch = image::parse_arch(row.compute_capability);
    return arch ? std::optional(arch->cc) : std::nullopt;
  };
  if (device != nullptr) return parse(*device);
  // The device is unknown, but irrelevant if all devices have the same compute capability.
  std::optional<ComputeCapability> common;
  for (const DeviceRecord& row : scene.report.devices) {
    const auto cc = parse(row);
    if (!cc || (common && *common != *cc)) return std::nullopt;
    common = cc;
  }
  return common;
}

image::Version driver_of(const Scene& scene) {
  if (scene.options.assume_driver) return *scene.options.assume_driver;
  if (!scene.report.driver) return {};
  return image::parse_version(scene.report.driver->cuda_version).value_or(image::Version{});
}

Ending ending_of(const Report& report) {
  Ending out;
  if (report.exit && report.exit->status) out.status = static_cast<int>(*report.exit->status);
  if (report.exit && report.exit->signal) out.signal = static_cast<int>(*report.exit->signal);
  return out;
}

Ending ending_of(const Report& report, const RunFacts& run) {
  return run.ending.known() ? run.ending : ending_of(report);
}

bool ended_well(const Scene& scene) {
  const Ending ending = ending_of(scene.report, scene.run);
  return ending.known() ? !ending.failed() : scene.report.end.has_value();
}

std::optional<core::Device> device_of(const Scene& scene, const DeviceRecord* device) {
  core::Device out;
  out.cc = cc_of(scene, device);
  if (scene.options.assume_cc) {
    out.kind = core::Device::Kind::assumed;
    return out;
  }
  if (device == nullptr) return out.cc ? std::optional(out) : std::nullopt;
  out.ordinal = device->ordinal;
  // The simulator's names say so themselves.
  constexpr std::string_view kSimulated = " (simulated)";
  out.name = device->name;
  out.simulated = device->name.ends_with(kSimulated);
  if (out.simulated) out.name.resize(out.name.size() - kSimulated.size());
  return out;
}

core::ReportLine location(const Report& report, std::uint32_t line) {
  return line == 0 ? core::ReportLine{} : core::ReportLine{report.path, line};
}

std::string object_text(const InReport& subject) {
  return subject.object == nullptr ? "the image" : std::string(core::basename_of(subject.object->path));
}

void set_facts(const Scene& scene, InReport& subject) {
  subject.facts.gpu.cc = cc_of(scene, subject.device);
  subject.facts.file.loose = subject.object == nullptr;
  subject.facts.driver.cuda = driver_of(scene);
  subject.facts.driver.switches = data::switches_in(scene.report.process.env);
}

InReport subject_of(const Scene& scene, const FailureRecord& failure) {
  InReport subject;
  subject.module = scene.index.module(failure.module);
  subject.object = scene.index.object(failure.object);
  if (subject.object == nullptr && subject.module != nullptr)
    subject.object = scene.index.object(subject.module->object);
  const auto ordinal = failure.device              ? failure.device
                       : subject.module != nullptr ? subject.module->device
                                                   : std::nullopt;
  subject.device = scene.index.device(ordinal);
  const std::optional<std::uint64_t> object_id =
      subject.object != nullptr ? std::optional(subject.object->id) : std::nullopt;
  const auto offset = subject.module != nullptr ? subject.module->offset : std::nullopt;
  if (subject.object != nullptr || subject.module != nullptr) {
    subject.gap = scene.index.gap(object_id, offset, ordinal, failure.line);
  }
  if (subject.module != nullptr) subject.kept = scene.files.kept(scene.report, *subject.module);
  subject.facts.images = find_images(
      {subject.object, offset, subject.gap, failure.kernel, subject.module, subject.kept}, scene.files);
  subject.facts.call.compiler = compiler_of(failure);
  if (subject.facts.call.compiler || is_refused_driver(failure))
    subject.caller = caller_package(scene, failure);
  for (const Layer& layer : failure.layers) {
    if (layer.code != 0 && !subject.facts.call.compiler) subject.facts.call.codes.push_back(layer.code);
  }
  subject.facts.call.stage = failure.stage;
  set_facts(scene, subject);
  subject.facts.file.loose = subject.object == nullptr && subject.module != nullptr;
  add_names(scene, failure.kernel, subject);
  find_in_caches(scene, subject);
  subject.facts.call.for_variable = asks_for_variable(failure);
  subject.facts.call.probing = called_by_probing_library(failure);
  if (const auto runtime = calling_runtime(failure))
    subject.facts.call.kept_by_runtime = *runtime >= kFirstWatchedRuntime || ended_well(scene);
  else if (failure.layers.size() == 1 && is_slot(failure.layers[0].api))  // linked in: its callers are unseen
    subject.facts.call.kept_by_runtime = ended_well(scene);
  subject.facts.call.went_on = went_on(scene, failure, subject);
  subject.facts.call.of_collection = is_of_collection(scene, failure, subject);
  subject.facts.process.parent_initialized = scene.parent_initialized;
  subject.facts.call.first = &failure == &scene.report.failures.front();
  subject.facts.gpu.count = scene.report.devices.size();
  subject.facts.driver.found = driver_found(scene.report);
  subject.facts.driver.runtime = failing_runtime(scene.report, failure);
  return subject;
}

InReport subject_of(const Scene& scene, const ObjectRecord& object, ComputeCapability cc,
                    Facts::Images images) {
  InReport subject;
  subject.object = &object;
  subject.facts.images = std::move(images);
  set_facts(scene, subject);
  subject.facts.gpu.cc = cc;
  return subject;
}

bool lacks(const Facts& facts) {
  return facts.images.scope != ImageScope::none &&
         select(facts.images.list, facts, {}).choice == image::Choice::none;
}

InReport subject_of(const Scene& scene, const input::GapRecord& gap, ComputeCapability cc) {
  InReport subject;
  subject.gap = &gap;
  subject.object = scene.index.object(gap.object);
  subject.device = gap.device ? scene.index.device(gap.device) : nullptr;
  subject.facts.images = find_images(
      {subject.object, gap.offset, &gap, gap.kernels.empty() ? std::string() : gap.kernels.front()},
      scene.files);
  set_facts(scene, subject);
  subject.facts.gpu.cc = cc;
  return subject;
}

std::optional<Candidate> candidate_of(std::string_view name, std::string_view isa) {
  const auto arch = image::parse_arch(name);
  if (!arch) return std::nullopt;
  for (const auto& [prefix, kind] :
       {std::pair("sm_", ImageKind::cubin), std::pair("compute_", ImageKind::ptx),
        std::pair("lto_", ImageKind::ltoir)})
    if (name.starts_with(prefix))
      return Candidate{kind, *arch, image::parse_version(isa).value_or(image::Version{})};
  return std::nullopt;
}

namespace {

ReadImages read_images(const ModuleQuestion& question, input::ObjectFiles& files) {
  ReadImages out;
  if (question.kept != nullptr && question.kept->file) {
    from_module(question.kept->file->module_at(0), question.module->line, question.kernel, out,
                "read from the image that the shim kept");
    if (out.images.scope != ImageScope::none) return out;
  }
  const ObjectFile* file = question.object != nullptr ? files.find(*question.object) : nullptr;
  if (file != nullptr) {
    if (question.offset) {
      from_module(file->module_at(*question.offset), question.object->line, question.kernel, out);
    } else if (!question.kernel.empty()) {
      from_module(file->module_with_kernel(question.kernel), question.object->line, question.kernel, out);
    }
    if (out.images.scope == ImageScope::none && !question.offset) {
      from_module(file->only_module_with_kernels(), question.object->line, question.kernel, out);
    }
    if (out.images.scope != ImageScope::none) return out;
  }
  if (question.gap != nullptr) from_gap(*question.gap, question.object, out);
  if (out.images.scope == ImageScope::none && question.object == nullptr && question.module != nullptr)
    from_selection(*question.module, out);
  if (out.images.scope == ImageScope::none && question.object != nullptr) from_report(*question.object, out);
  if (out.images.scope == ImageScope::none && file != nullptr) {
    from_counts(file->image_counts(), *question.object, file->code().modules.size(), out);
  }
  return out;
}

}  // namespace

Facts::Images find_images(const ModuleQuestion& question, input::ObjectFiles& files) {
  ReadImages found = read_images(question, files);
  found.images.source = std::make_shared<const ImageSource>(std::move(found.source));
  return std::move(found.images);
}

std::vector<std::string> lacking_kernels(const Facts& facts, const std::string& first) {
  const std::vector<FileImage>& read = facts.images.source->read;
  std::map<std::string, std::vector<ImageFact>> by_kernel;
  for (std::size_t i = 0; i < read.size(); ++i)
    for (const std::string& kernel : read[i].kernels) by_kernel[kernel].push_back(facts.images.list[i]);
  // What the driver takes is decided for the module as a whole; a kernel that is not in that image is lacking
  // too.
  const image::Selection chosen = select(facts.images.list, facts, facts.driver.switches);
  std::vector<std::string> out;
  if (!first.empty()) out.push_back(first);
  for (const auto& [kernel, images] : by_kernel) {
    const bool served = chosen.choice != image::Choice::none && contains(read[chosen.index].kernels, kernel);
    if (!served && kernel != first) out.push_back(kernel);
  }
  return out;
}

ImageJudgment judge_image(const ImageFact& fact, const Facts& facts) {
  const Candidate& image = fact.candidate;
  if (!facts.gpu.cc) return {false, "the GPU is not known"};
  if (image.kind == ImageKind::ltoir) return {false, "must be linked before it can run"};
  const bool fits = judge(image, plain(facts)).fits;
  if (!fits && image.kind == ImageKind::tileir) {
    if (judge(base_of(image), plain(facts)).fits)
      return {false, fmt::format("Tile IR {} is newer than the driver compiles", name(image.isa))};
    return {false, "Tile IR compiles for 8.0 and later GPUs only"};
  }
  if (!fits) {
    return {false,
            image.kind == ImageKind::cubin ? why_not_cubin(image, *facts.gpu.cc) : why_not_ptx(image, facts)};
  }
  if (!judge(image, {*facts.gpu.cc, facts.driver.cuda, facts.driver.switches}).fits) {
    if (image.kind == ImageKind::cubin) return {false, "would fit, but is ignored by a switch", true};
    const image::JitSwitches& on = facts.driver.switches;
    const bool forbidden = on.disable_ptx_jit || (on.disable_jit && !on.force_ptx_jit);
    return {false,
            forbidden ? "would fit, but a switch forbids compiling"
                      : "would fit, but the PTX compiler is missing",
            true};
  }
  if (!image::driver_reads(fact.compression, facts.driver.cuda))
    return {false, "would fit, but drivers before CUDA 12.4 cannot decompress it", true};
  if (fact.has_kernel == false) return {false, "fits, but lacks the kernel", true};
  return {true, image.kind == ImageKind::cubin ? "fits" : "fits, compiled at load"};
}

image::Selection select(const std::vector<ImageFact>& images, const Facts& facts,
                        const image::JitSwitches& switches) {
  std::vector<Candidate> candidates;
  candidates.reserve(images.size());
  for (const ImageFact& image : images) candidates.push_back(image.candidate);
  return select_image(candidates, {facts.gpu.cc.value_or(ComputeCapability{}), facts.driver.cuda, switches});
}

std::shared_ptr<const FileGap> FileGaps::find(const ObjectRecord& object, const ObjectFile& file,
                                              ComputeCapability cc, image::Version driver) {
  const std::tuple key(&file, cc, driver);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  auto out = std::make_shared<const FileGap>(summary_of(unserved_modules(object.path, file, cc, driver)));
  std::size_t bytes = 0;
  for (const std::string& kernel : out->kernels) bytes += sizeof(kernel) + kernel.size();
  if (known_.size() < kMaxKnown && bytes_ + bytes <= kMaxNames) {
    bytes_ += bytes;
    known_.emplace(key, out);
  }
  return out;
}

}  // namespace kshim::diagnose
