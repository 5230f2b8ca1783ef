// SPDX-License-Identifier: Apache-2.0
// Rules over a failing line and what stands beside it in a log: versions of toolkit and driver, and who
// speaks.
#include <cctype>

#include "analyzer/core/text.h"
#include "analyzer/data/knowledge.h"
#include "analyzer/diagnose/log_diagnosis.h"
#include "analyzer/diagnose/rules.h"
#include "kshim/image/decompress.h"

namespace kshim::diagnose {
using core::Cause;
using data::ToolkitRow;
using input::LogFacts;
using input::LogMatch;

namespace {

using image::Suffix;
using image::Version;

/// The log, its line in question, and the facts as the rules over images see them.
using MaybeCause = std::optional<CauseCandidate>;
using Rule = MaybeCause (*)(const LogFacts&, const LogMatch&, const Facts&);

bool is_one_of(int code, std::initializer_list<int> codes) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

bool has_list(const Facts& facts) { return !facts.images.list.empty(); }

// Whether any cubin that this toolkit makes would run on the device.
bool can_serve(const ToolkitRow& toolkit, image::ComputeCapability device) {
  for (const data::GpuRow& gpu : data::gpus()) {
    const image::Arch arch{gpu.cc, Suffix::none};
    if (builds_for(toolkit, arch) && image::judge({image::ImageKind::cubin, arch, {}}, {device, {}, {}}).fits)
      return true;
  }
  return false;
}

// The toolkit that built it makes nothing that runs here: no list of architectures could have helped.
MaybeCause toolkit_cannot(const LogFacts& clues, const LogMatch& hit, const Facts& facts) {
  // A library of CUDA that only says that it failed: one that is older than the GPU.
  const bool vague_status =
      hit.code == 0 && hit.cause == Cause::unknown && !hit.id.empty() && hit.confidence < 0.55;
  if ((!is_one_of(hit.code, {98, 200, 209, 218, 500}) && !vague_status) || !facts.gpu.cc ||
      !clues.toolkit.known() || has_list(facts))
    return std::nullopt;
  const ToolkitRow* row = data::toolkit_at_most(clues.toolkit);
  if (row == nullptr || can_serve(*row, *facts.gpu.cc)) return std::nullopt;
  const image::Arch plain{*facts.gpu.cc, Suffix::none};
  const ToolkitRow* first = data::first_toolkit_for(plain);
  const ToolkitRow* last = data::last_toolkit_for(plain);
  if (first == nullptr) return std::nullopt;
  if (row->version < first->version) {
    return CauseCandidate{Cause::no_image_for_arch, hit.code == 218 ? 0.5 : 0.8,
                          fmt::format("CUDA {} cannot build for {}; CUDA {} is the first that can",
                                      name(row->version), name(*facts.gpu.cc), name(first->version))};
  }
  return CauseCandidate{Cause::no_image_for_arch, 0.85,
                        fmt::format("CUDA {} makes no code for {} any more: CUDA {} was the last that did",
                                    name(row->version), name(*facts.gpu.cc), name(last->version))};
}

// A program that compiles for the GPU that is there, with a toolkit newer than the driver.
MaybeCause compiled_for_newer_driver(const LogFacts& clues, const LogMatch& hit, const Facts& facts) {
  if (!clues.run_time_compiler || !clues.driver.known() || !clues.toolkit.known() || has_list(facts))
    return std::nullopt;
  if (!(clues.driver < clues.toolkit) || !is_one_of(hit.code, {209, 218, 221})) return std::nullopt;
  return CauseCandidate{
      Cause::ptx_newer_than_driver, 0.55,
      fmt::format("{} compiles for the GPU that is there, with CUDA {}; the driver is for CUDA {} and reads "
                  "nothing newer",
                  clues.compiler, name(clues.toolkit), name(clues.driver))};
}

bool is_finished(const LogFacts& clues) {
  return std::ranges::any_of(clues.packages, [](const input::PackageMention& each) {
    return std::ranges::any_of(data::software(),
                               [&](const auto& row) { return row.package == each.name && row.released; });
  });
}

MaybeCause image_newer_than_driver(const LogFacts& clues, const LogMatch& hit, const Facts& facts) {
  if (hit.code != 200) return std::nullopt;
  // Of a fatbin the driver takes what fits, and says 209 where nothing does.
  if (!clues.driver.known() && hit.quote.find("fatbin") != std::string::npos)
    return CauseCandidate{
        Cause::driver_too_old_for_image, 0.45,
        "a fatbin without code for the GPU gives 209; 200 means that the driver cannot read "
        "it, which mostly is one older than the CUDA that made it"};
  if (!clues.driver.known()) return std::nullopt;
  // An image that fits and is refused: what is left is the driver that cannot read it.
  constexpr double kListed = 0.65;
  const bool listed = has_list(facts) && facts.gpu.cc;
  const bool fits =
      !listed || select(facts.images.list, facts, facts.driver.switches).choice != image::Choice::none;
  if (!fits) return std::nullopt;
  if (clues.toolkit.major > clues.driver.major) {
    return CauseCandidate{
        Cause::driver_too_old_for_image, 0.85,
        fmt::format("CUDA {} made the code, and the driver is for CUDA {}: cubins of a later CUDA major "
                    "version are not read",
                    name(clues.toolkit), name(clues.driver))};
  }
  if (!(clues.driver < image::kFirstZstdDriver)) return std::nullopt;
  constexpr Version kFirstZstdToolkit{12, 8};
  const bool may_compress = clues.toolkit.known() && !(clues.toolkit < kFirstZstdToolkit);
  // Of a finished program, the driver's own number says nothing of what built it.
  const bool said = clues.toolkit.known() && !(is_finished(clues) && clues.toolkit == clues.driver);
  if (!may_compress && said && !(clues.driver < clues.toolkit)) return std::nullopt;
  return CauseCandidate{
      Cause::driver_too_old_for_image,
      may_compress ? 0.75
      : listed     ? kListed
                   : 0.45,
      fmt::format("Toolkits of CUDA 12.8 and newer compress device code in a way that drivers before CUDA {} "
                  "do not read, and this one is for CUDA {}",
                  name(image::kFirstZstdDriver), name(clues.driver))};
}

// What compiles for the GPU that is there has code for another one: it did not compile it here.
MaybeCause cached_for_another(const LogFacts& clues, const LogMatch& hit, const Facts& facts) {
  if (!clues.run_time_compiler || !is_one_of(hit.code, {200, 209}) || !has_list(facts) || !facts.gpu.cc)
    return std::nullopt;
  if (facts.images.list.size() != 1 || facts.images.list.front().candidate.kind != image::ImageKind::cubin)
    return std::nullopt;
  if (select(facts.images.list, facts, facts.driver.switches).choice != image::Choice::none)
    return std::nullopt;
  return CauseCandidate{
      Cause::stale_cache_artifact, 0.85,
      fmt::format("{} compiles for the local GPU; code for another GPU comes from its cache",
                  clues.compiler)};
}

// Two kinds of GPU and one folder: what one of them compiled is what the other one finds.
MaybeCause cached_by_neighbor(const LogFacts& clues, const LogMatch& hit, const Facts& facts) {
  const bool cache = clues.has("cache");
  if (clues.has("tried-cache")) return std::nullopt;
  if ((!clues.has("shared-folder") && !cache) || !is_one_of(hit.code, {98, 200, 209, 218, 500}) ||
      has_list(facts))
    return std::nullopt;
  const auto& devices = clues.devices;
  if (std::ranges::all_of(devices,
                          [&](const input::DeviceMention& each) { return each.cc == devices.front().cc; }))
    return !cache || !is_one_of(hit.code, {200, 218})
               ? std::nullopt
               : std::optional(
                     CauseCandidate{Cause::stale_cache_artifact, 0.5,
                                    "The log names a cache of compiled kernels: what it holds may be "
                                    "of another GPU or of another release"});
  return CauseCandidate{
      Cause::stale_cache_artifact, 0.55,
      "Machines with different GPUs share a folder: what the cache of one compiled is for its "
      "own GPU"};
}

bool is_any_of(std::string_view word, std::initializer_list<std::string_view> lower) {
  return std::any_of(lower.begin(), lower.end(), [&](std::string_view name) {
    return std::equal(name.begin(), name.end(), word.begin(), word.end(),
                      [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); });
  });
}

// What compiles for the GPU that is there has written what the driver does not take: its compiler does not
// know the GPU. Triton asks ptxas, which refuses aloud: there it is the cache.
MaybeCause compiled_what_is_invalid(const LogFacts& clues, const LogMatch& hit, const Facts& facts) {
  if (!is_one_of(hit.code, {200, 300}) || has_list(facts)) return std::nullopt;
  if (is_any_of(clues.compiler, {"triton error", "inductor"}) && hit.code == 200 && !clues.has("tried-cache"))
    return CauseCandidate{
        Cause::stale_cache_artifact, 0.45,
        "Triton compiles for the GPU that is there; an image that the driver does not take mostly "
        "comes from its cache, which another GPU has written"};
  if (!facts.gpu.cc || !is_any_of(clues.compiler, {"cupy", "jax", "jaxlib", "xla"})) return std::nullopt;
  return CauseCandidate{
      Cause::nvrtc_arch_unsupported, 0.45,
      fmt::format("{} compiles for the GPU that is there; {} for what it compiled mostly means that "
                  "its compiler is older than {}",
                  clues.compiler, hit.code, name(*facts.gpu.cc))};
}

// PTX that a program brings along (FFmpeg, Rust): for a newer GPU, or of a newer toolkit than the driver. A
// Jetson's driver is part of its system, and what is installed beside it is newer.
MaybeCause foreign_ptx(const LogFacts& clues, const LogMatch& hit, const Facts& facts) {
  constexpr image::ComputeCapability kDefaultTarget{7, 5};
  if (hit.code != 218 || has_list(facts)) return std::nullopt;
  // What the compiler says of the PTX's version decides, wherever it stands.
  const auto& hits = clues.hits;
  if (std::any_of(hits.begin(), hits.end(),
                  [](const LogMatch& each) { return !group(each, "reads").empty(); }))
    return std::nullopt;
  const CauseCandidate broken{
      Cause::invalid_image, 0.4,
      "the driver could not compile the PTX that it was given, and its log says which line"};
  if (!facts.gpu.cc) return broken;
  const data::GpuRow* gpu = data::find_gpu(*facts.gpu.cc);
  if (gpu != nullptr && gpu->tegra && clues.toolkit.known() && !clues.driver.known())
    return CauseCandidate{
        Cause::ptx_newer_than_driver, 0.5,
        fmt::format("a Jetson's driver comes with its system, and CUDA {}, which is installed "
                    "beside it, may write newer PTX than it reads",
                    name(clues.toolkit))};
  if (!(*facts.gpu.cc < kDefaultTarget)) return broken;
  return CauseCandidate{
      Cause::ptx_newer_than_device, 0.5,
      fmt::format("PTX that ships with a program usually targets GPUs newer than {}, and fails "
                  "with 218 there",
                  name(*facts.gpu.cc))};
}

// compute-sanitizer reports what a library tried and handled.
MaybeCause handled_probe(const LogFacts& clues, const LogMatch& hit, const Facts&) {
  if (!clues.has("sanitizer") || hit.code != 209) return std::nullopt;
  const bool probing = std::any_of(clues.hits.begin(), clues.hits.end(),
                                   [](const LogMatch& each) { return each.id == "nccl_probe"; });
  if (!probing) return std::nullopt;
  return CauseCandidate{Cause::benign_probe, 0.88,
                        "compute-sanitizer shows every call that fails, also those of libraries that ask for "
                        "kernels of other GPUs "
                        "and go on"};
}

// 98 was what 209 is now, and device-linked libraries answer 500 where they have no image.
MaybeCause no_image_by_another_name(const LogFacts& clues, const LogMatch& hit, const Facts& facts) {
  constexpr Version kRenumbered{10, 1};
  // GPUs before Kepler have had no newer one.
  const bool fermi = facts.gpu.cc && facts.gpu.cc->major < 3;
  const bool old = hit.old_code == 8 || fermi || (clues.toolkit.known() && clues.toolkit < kRenumbered);
  if (hit.code == 98 && has_list(facts) && !facts.gpu.cc)
    return CauseCandidate{
        Cause::no_image_for_arch, 0.45,
        "The log lists the built architectures but not the GPU: on a GPU outside the list, 98 can "
        "mean the same"};
  if (has_list(facts)) return std::nullopt;
  if (hit.code == 98 && old)
    return CauseCandidate{
        Cause::no_image_for_arch, 0.5,
        "The runtime of CUDA before 10.1 says \"invalid device function\" where no image fits the GPU"};
  // CUB and Thrust ask for a kernel's attributes before they start it, and get 98 where a launch gives 209.
  const bool bare = !facts.gpu.cc && hit.quote.find("98") != std::string::npos;
  if (hit.code == 98 && !clues.run_time_compiler && !bare)
    return CauseCandidate{
        Cause::no_image_for_arch, 0.4,
        "98 usually means that the program was built for other GPUs: code that queries a kernel's "
        "attributes first, as CUB and Thrust do, gets 98 instead of the 209 of a launch"};
  if (hit.code == 500)
    return CauseCandidate{
        Cause::no_image_for_arch, 0.45,
        "A library of relocatable device code answers 500 where it has no image for the GPU"};
  return std::nullopt;
}

// conda's cuda-nvcc brings ptxas and libdevice, which what compiles at run time takes from there.
MaybeCause compiler_of_another_release(const LogFacts& clues, const LogMatch& hit, const Facts&) {
  const Version compiler = clues.compiler_package;
  if (!is_one_of(hit.code, {200, 209, 218, 222}) || !compiler.known() || !clues.toolkit.known() ||
      compiler.major == clues.toolkit.major)
    return std::nullopt;
  return CauseCandidate{Cause::mixed_cuda_libraries, 0.65,
                        fmt::format("cuda-nvcc is of CUDA {}, and the libraries beside it are of CUDA {}",
                                    name(compiler), name(clues.toolkit))};
}

// The runtime finds no driver in a container that was not given its GPU, and calls it too old.
MaybeCause container_without_gpu(const LogFacts& clues, const LogMatch& hit, const Facts&) {
  if (hit.code != 35) return std::nullopt;
  // A driver's number of the host says nothing of a container that was not given its GPU.
  const bool not_given = clues.has("container") && !clues.has("gpu-given") &&
                         !(clues.has("in-container") && clues.driver.known());
  const bool serves = clues.driver.known() && clues.toolkit.known() &&
                      (clues.toolkit.major < 11 ? !(clues.driver < clues.toolkit)
                                                : clues.driver.major >= clues.toolkit.major);
  if (clues.driver.known() && clues.toolkit.known() && !(serves && not_given)) {
    if (clues.driver.major >= clues.toolkit.major) return std::nullopt;
    return CauseCandidate{Cause::driver_too_old, 0.9,
                          fmt::format("The driver is for CUDA {}, and the program was made with CUDA {}",
                                      name(clues.driver), name(clues.toolkit))};
  }
  if (clues.driver.known() && !serves) return std::nullopt;
  if (shows_no_driver(clues))
    return CauseCandidate{Cause::no_device, 0.85,
                          clues.has("no-smi")
                              ? "No driver is here: nvidia-smi, which comes with it, is not found, and the "
                                "runtime says 35 for that"
                              : "The program runs in a container, and nothing names a driver: the runtime "
                                "says 35 where it finds none"};
  if (!not_given) return std::nullopt;
  return CauseCandidate{
      Cause::no_device, serves ? 0.92 : 0.85,
      "A container that was started without its GPU has no driver, and the runtime says 35 for it"};
}

// A switch that stands in the log decides which of two words for one thing is right.
MaybeCause forced_compiling(const LogFacts&, const LogMatch& hit, const Facts& facts) {
  if (has_list(facts) || !is_one_of(hit.code, {209, 222, 218, 223})) return std::nullopt;
  if (facts.driver.switches.force_ptx_jit || facts.driver.switches.force_jit)
    return CauseCandidate{
        Cause::sass_bypassed, 0.6,
        "CUDA_FORCE_PTX_JIT or CUDA_FORCE_JIT is set, which makes the driver ignore every cubin"};
  if (facts.driver.switches.disable_ptx_jit || facts.driver.switches.disable_jit)
    return CauseCandidate{
        Cause::ptx_jit_disabled, 0.6,
        "CUDA_DISABLE_PTX_JIT or CUDA_DISABLE_JIT is set, which makes the driver ignore every PTX"};
  return std::nullopt;
}

// Code fits the GPU, says the list, and the driver found none: it is another library, or the error is an old
// one.
MaybeCause left_behind(const LogFacts& clues, const LogMatch& hit, const Facts& facts) {
  if (hit.code != 209 || !clues.has("nccl") || !has_list(facts) || !facts.gpu.cc) return std::nullopt;
  if (select(facts.images.list, facts, facts.driver.switches).choice == image::Choice::none)
    return std::nullopt;
  return CauseCandidate{
      Cause::stale_error, 0.5,
      "The listed file has code for this GPU, and the process uses NCCL, which probes kernels for "
      "every GPU at startup and leaves a 209 behind, which later code reports"};
}

struct NamedLibrary {
  const char* library;
  Cause cause;
};
constexpr NamedLibrary kLibraries[] = {{"cuDNN", Cause::cudnn_mismatch},
                                       {"TensorRT", Cause::library_refuses}};

// The line speaks of the library itself, or of an error without a number: an old cuDNN has no part in
// another's 209.
MaybeCause outdated_library(const LogFacts& clues, const LogMatch& hit, const Facts& facts) {
  if (hit.code != 0 || !facts.gpu.cc) return std::nullopt;
  if (hit.cause != Cause::cudnn_mismatch && hit.cause != Cause::library_refuses &&
      hit.cause != Cause::unknown)
    return std::nullopt;
  return library_without(clues, *facts.gpu.cc);
}

// What the table of wheels says of the release, where no file was looked at.
MaybeCause wheel_of_table(const LogFacts& clues, const LogMatch& hit, const Facts& facts) {
  if (!is_one_of(hit.code, {98, 209}) || has_list(facts)) return std::nullopt;
  const std::string_view platform = clues.has("windows") ? "windows x86_64" : data::kLinux;
  const input::PackageMention* package = package_that_failed(clues, &hit);
  if (package == nullptr || package->version.empty()) return std::nullopt;
  const data::WheelRow* row =
      data::find_wheel(package->known_as(), package->version, package->variant, platform);
  if (row == nullptr) return std::nullopt;
  const std::string release =
      package->variant.empty()
          ? fmt::format("{} {}", package->written, package->version)
          : fmt::format("{} {}+{}", package->written, package->version, package->variant);
  const bool serving = facts.gpu.cc && serves(*row, *facts.gpu.cc) != image::Choice::none;
  // Frameworks hand 98 on where the runtime finds no kernel for the GPU; it has other causes where there is
  // one.
  if (hit.code == 98 && (serving || !facts.gpu.cc)) return std::nullopt;
  if (serving) {
    return CauseCandidate{
        Cause::no_image_for_arch, 0.45,
        fmt::format("The published {} has code for {}: another library of the process lacks it", release,
                    name(*facts.gpu.cc))};
  }
  std::string images;
  for (const image::Candidate& image : row->images)
    images.append(images.empty() ? "" : ", ").append(image::to_name(image.kind, image.arch).view());
  return CauseCandidate{
      Cause::no_image_for_arch, package->variant.empty() || !facts.gpu.cc ? 0.6 : 0.8,
      fmt::format("The published {} has {} and no other code (a table of such packages; the file "
                  "itself was not looked at)",
                  release, images)};
}

// A handle is of the device that was current when it was made, which is 0 at first.
MaybeCause handle_of_another_device(const LogFacts& clues, const LogMatch& hit, const Facts&) {
  const bool second = std::ranges::any_of(clues.ordinals, [](const auto& each) { return each.ordinal > 0; });
  if (hit.code != 400 || !second) return std::nullopt;
  return CauseCandidate{
      Cause::context_mismatch, 0.6,
      "The log names a GPU other than the first, and a stream or an event that was made before "
      "it was current belongs to another one"};
}

// A code without a reason, beside what a person or Windows says of the machine.
MaybeCause told_by_machine(const LogFacts& clues, const LogMatch& hit, const Facts&) {
  if (hit.code == 400 && clues.has("ipc"))
    return CauseCandidate{Cause::context_mismatch, 0.7,
                          "The call opens memory of the GPU that another process has made"};
  if (hit.code != 999) return std::nullopt;
  if (clues.of_windows() && clues.has("display-reset"))
    return CauseCandidate{Cause::device_fault, 0.75,
                          "Windows reset the display driver, which ends every kernel that runs"};
  if (clues.has("suspended"))
    return CauseCandidate{Cause::unknown, 0.75,
                          "After a suspend the driver's module for compute does not answer"};
  return std::nullopt;
}

constexpr std::array kLogRules = {
    Rule{toolkit_cannot},
    Rule{compiled_for_newer_driver},
    Rule{image_newer_than_driver},
    Rule{cached_for_another},
    Rule{cached_by_neighbor},
    Rule{compiled_what_is_invalid},
    Rule{foreign_ptx},
    Rule{handled_probe},
    Rule{no_image_by_another_name},
    Rule{compiler_of_another_release},
    Rule{container_without_gpu},
    Rule{forced_compiling},
    Rule{left_behind},
    Rule{handle_of_another_device},
    Rule{told_by_machine},
    Rule{outdated_library},
    Rule{wheel_of_table},
};

}  // namespace

bool shows_no_driver(const LogFacts& clues) {
  return !clues.driver.known() && (clues.has("no-smi") || clues.has("in-container"));
}

MaybeCause library_without(const LogFacts& clues, image::ComputeCapability device) {
  for (const NamedLibrary& named : kLibraries) {
    const input::PackageMention* package = find_package(clues, named.library);
    if (package == nullptr || package->version.empty()) continue;
    const auto support = data::library_supports(named.library, package->version, device);
    if (!support || *support == data::Support::yes) continue;
    return CauseCandidate{
        named.cause, 0.85,
        fmt::format(
            "{} {} does not serve GPUs of compute capability {}: it is too {} for them by its maker's list",
            named.library, package->version, name(device),
            *support == data::Support::too_old_gpu ? "new" : "old")};
  }
  return std::nullopt;
}

std::vector<CauseCandidate> candidates_from_context(const LogFacts& clues, const LogMatch& hit,
                                                    const Facts& facts) {
  std::vector<CauseCandidate> out;
  for (const Rule rule : kLogRules) {
    if (auto suspect = rule(clues, hit, facts)) out.push_back(std::move(*suspect));
  }
  return out;
}

}  // namespace kshim::diagnose
