// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/rules.h"

#include "analyzer/core/log.h"
#include "analyzer/core/text.h"
#include "analyzer/diagnose/compilers.h"
#include "kshim/image/decompress.h"

namespace kshim::diagnose {
using core::Cause;

namespace {

constexpr int kInvalidHandle = 400;

std::optional<Match> driver_too_old(const Facts& facts) {
  if (!facts.call.has(core::kInsufficientDriver) || !facts.driver.found || !facts.driver.cuda.known())
    return std::nullopt;
  if (!facts.driver.runtime.known())
    return Match{0.9,
                 fmt::format("The driver is one for CUDA {}: 35 means that the runtime needs a newer one",
                             name(facts.driver.cuda))};
  if (facts.driver.runtime.major <= facts.driver.cuda.major) return std::nullopt;
  return Match{0.97, fmt::format("The runtime is CUDA {}, but the driver supports only CUDA {}",
                                 facts.driver.runtime.major, name(facts.driver.cuda))};
}

/// 35 is also what a container without its GPU shows: there is no driver at all.
std::optional<Match> no_driver(const Facts& facts) {
  if (!facts.call.has(core::kInsufficientDriver) || facts.driver.found) return std::nullopt;
  return Match{
      0.85,
      "No libcuda.so.1 was loaded: there is no driver here, or a container was started without its GPU"};
}

std::optional<Match> foreign_handle(const Facts& facts) {
  if (!facts.call.has(kInvalidHandle) || !facts.call.first || facts.gpu.count < 2) return std::nullopt;
  return Match{
      0.8, fmt::format("The process uses {} GPUs, and nothing had failed before: the stream, event or kernel "
                       "belongs to another of them",
                       facts.gpu.count)};
}

/// The launch itself is refused, though an image fits.
std::optional<Match> refused_configuration(const Facts& facts) {
  if (facts.call.stage != "launch" || !facts.call.has(kInvalidValue)) return std::nullopt;
  if (!facts.gpu.cc || facts.images.list.empty() ||
      select(facts.images.list, facts, facts.driver.switches).choice == image::Choice::none)
    return std::nullopt;
  return Match{
      0.7,
      "An image fits, and the launch itself is refused as invalid: grid, block or shared memory are beyond "
      "what the GPU allows, or an argument is missing"};
}

std::optional<Match> fork_after_init(const Facts& facts) {
  if (!facts.call.has(core::kNotInitialized) || !facts.process.parent_initialized) return std::nullopt;
  return Match{
      0.9, "The parent process initialized CUDA before the fork, and CUDA does not work in a forked child"};
}

using image::Candidate;
using image::Choice;
using image::ImageKind;
using image::JitSwitches;
using image::Suffix;

// What cannot be ruled out without seeing the machine stays out of reach of certainty.
constexpr double kModuleKnown = 0.97;
constexpr double kFileKnown = 0.75;
constexpr double kContradiction = 0.5;  // the code is one that this cause does not usually give
constexpr double kNameable = 0.35;      // below, `unknown` is the honest answer

bool about_images(const Facts& facts) {
  // Any other code is judged by itself.
  return facts.call.codes.empty() || facts.call.has_any(code_trait::about_code);
}

bool beyond_limits(const Facts& facts) { return facts.call.has_any(code_trait::limit); }

bool judgeable(const Facts& facts) {
  return !facts.call.compiler && facts.gpu.cc && facts.images.scope != ImageScope::none &&
         !facts.images.list.empty() && about_images(facts);
}

// How much the list of images proves, given the codes that would be expected.
double certainty(const Facts& facts, std::initializer_list<int> expected) {
  const double known = facts.images.scope == ImageScope::module ? kModuleKnown : kFileKnown;
  if (facts.call.codes.empty()) return known;
  const bool fits = std::ranges::any_of(expected, [&](int code) { return facts.call.has(code); });
  return fits ? known : kContradiction;
}

JitSwitches defaults(const Facts& facts) {
  JitSwitches plain;
  plain.compiler_present = facts.driver.switches.compiler_present;
  return plain;
}

Choice choice(const Facts& facts, const JitSwitches& switches) {
  return select(facts.images.list, facts, switches).choice;
}

bool nothing_fits(const Facts& facts) {
  return judgeable(facts) && choice(facts, facts.driver.switches) == Choice::none &&
         choice(facts, {}) == Choice::none;
}

bool fits_ignoring_isa(const Facts& facts) {
  return std::ranges::any_of(facts.images.list, [&](const ImageFact& image) {
    Candidate candidate = image.candidate;
    candidate.isa = {};
    return candidate.kind != ImageKind::cubin &&
           judge(candidate, {*facts.gpu.cc, facts.driver.cuda, {}}).fits;
  });
}

std::optional<Match> sass_bypassed(const Facts& facts) {
  if (!judgeable(facts) || !(facts.driver.switches.force_ptx_jit || facts.driver.switches.force_jit))
    return std::nullopt;
  if (choice(facts, facts.driver.switches) != Choice::none || choice(facts, defaults(facts)) != Choice::sass)
    return std::nullopt;
  return Match{certainty(facts, {209, 218, 221, 222, 223, 98, 500}),
               "A cubin for this GPU is there, but the environment tells the driver to ignore cubins"};
}

std::optional<Match> ptx_jit_disabled(const Facts& facts) {
  const bool forbidden = facts.driver.switches.disable_ptx_jit || facts.driver.switches.disable_jit;
  if (!judgeable(facts) || !forbidden) return std::nullopt;
  if (choice(facts, facts.driver.switches) != Choice::none || choice(facts, defaults(facts)) != Choice::jit)
    return std::nullopt;
  return Match{certainty(facts, {223, 209, 98, 500}),
               "No cubin fits. The PTX fits, but an environment variable stops the driver from compiling it"};
}

std::optional<Match> jit_compiler_missing(const Facts& facts) {
  if (!judgeable(facts) || choice(facts, {}) != Choice::jit) return std::nullopt;
  if (!facts.call.has(221) && facts.driver.switches.compiler_present) return std::nullopt;
  return Match{certainty(facts, {221, 209}),
               "No cubin fits, PTX would, but the driver did not find its PTX compiler"};
}

std::optional<Match> ptx_newer_than_driver(const Facts& facts) {
  if (!judgeable(facts) || !facts.driver.cuda.known() || !nothing_fits(facts) || !fits_ignoring_isa(facts))
    return std::nullopt;
  const image::Version readable = image::ptx_isa_of_cuda(facts.driver.cuda);
  const bool ptx = std::ranges::any_of(
      facts.images.list, [](const ImageFact& image) { return image.candidate.kind == ImageKind::ptx; });
  if (!ptx)
    return Match{
        certainty(facts, {222, 209, 218, 98, 500}),
        fmt::format("The Tile IR that could be compiled for {} is newer than a driver for CUDA {} reads",
                    name(*facts.gpu.cc), name(facts.driver.cuda))};
  return Match{certainty(facts, {222, 209, 218, 98, 500}),
               fmt::format("The PTX that could be compiled for {} is newer than PTX {}, which is what a "
                           "driver for CUDA {} reads",
                           name(*facts.gpu.cc), name(readable), name(facts.driver.cuda))};
}

std::optional<Match> arch_specific_image(const Facts& facts) {
  if (!nothing_fits(facts) || fits_ignoring_isa(facts)) return std::nullopt;
  // The image that comes nearest to the device from below is what the builder meant for it: without its
  // suffix, PTX of its architecture would run. Code for a newer architecture would not, whatever its suffix
  // is.
  const ImageFact* nearest = nullptr;
  for (const ImageFact& image : facts.images.list) {
    const image::Arch arch = image.candidate.arch;
    if (arch.cc <= *facts.gpu.cc && (nearest == nullptr || nearest->candidate.arch < arch)) nearest = &image;
  }
  // A file with sm_90 beside sm_90a is not locked to sm_90a: another build for sm_90 would not have helped.
  const auto plain_twin = [&](const ImageFact& image) {
    return image.candidate.arch == image::Arch{nearest->candidate.arch.cc, Suffix::none};
  };
  const bool nearest_specific = nearest != nullptr && nearest->candidate.arch.suffix != Suffix::none &&
                                std::ranges::none_of(facts.images.list, plain_twin);
  if (!nearest_specific) return std::nullopt;
  const Candidate& locked = nearest->candidate;
  return Match{
      certainty(facts, {209, 98, 500, 200, 218, 400}),
      fmt::format("{} is locked to {} by its suffix: neither it nor PTX of its kind runs on {}", name(locked),
                  locked.arch.suffix == Suffix::a ? name(locked.arch.cc) : "its family",
                  name(*facts.gpu.cc))};
}

std::optional<Match> ptx_newer_than_device(const Facts& facts) {
  if (!nothing_fits(facts)) return std::nullopt;
  bool any = false;
  for (const ImageFact& image : facts.images.list) {
    if (image.candidate.kind != ImageKind::ptx) continue;
    if (image.candidate.arch.cc <= *facts.gpu.cc) return std::nullopt;
    any = true;
  }
  if (!any) return std::nullopt;
  return Match{
      certainty(facts, {209, 98, 500, 218, 200, 400}),
      fmt::format("No cubin fits, and PTX only compiles for its own architecture and newer ones: {} is older",
                  name(*facts.gpu.cc))};
}

std::optional<Match> no_image_for_arch(const Facts& facts) {
  if (!nothing_fits(facts) || fits_ignoring_isa(facts)) return std::nullopt;
  return Match{
      certainty(facts, {209, 98, 500, 200, 400}),
      fmt::format("No cubin fits {} and there is no PTX that could be compiled for it", name(*facts.gpu.cc))};
}

std::optional<Match> stale_cache_artifact(const Facts& facts) {
  if (facts.file.cache.empty() || !nothing_fits(facts)) return std::nullopt;
  return Match{
      0.98, fmt::format(
                "The image lies in {}'s cache of compiled kernels, and was compiled for another GPU than {}",
                facts.file.cache, name(*facts.gpu.cc))};
}

// Not the architecture but the name: no image of the module has it.
Match no_such_name(const Facts& facts) {
  if (facts.images.alike.empty())
    return {0.9, "The image fits this GPU, and no image of the module has a kernel of this name"};
  const std::string& alike = facts.images.alike.front();
  return {0.95,
          fmt::format(
              "The image fits this GPU and has {}, whose name there is {}: no image has the name asked for",
              core::shorten(core::demangle(alike), 60), alike)};
}

std::optional<Match> kernel_missing(const Facts& facts) {
  if (!judgeable(facts) || facts.call.for_variable) return std::nullopt;
  const image::Selection selection = select(facts.images.list, facts, facts.driver.switches);
  if (selection.choice == Choice::none) return std::nullopt;
  const ImageFact& chosen = facts.images.list[selection.index];
  const bool elsewhere =
      std::ranges::any_of(facts.images.list, [](const ImageFact& image) { return image.has_kernel == true; });
  if (chosen.has_kernel == false && !elsewhere && facts.call.by_name && facts.call.has(500)) {
    return no_such_name(facts);
  }
  if (chosen.has_kernel == false) {
    return Match{elsewhere ? certainty(facts, {98, 500, 400, 209}) : 0.8,
                 fmt::format("The driver takes {} for this GPU, and the kernel is not in it{}",
                             name(chosen.candidate), elsewhere ? ", though it is in another image" : "")};
  }
  if (chosen.has_kernel == true || !(facts.call.has(98) || facts.call.has(500))) return std::nullopt;
  return Match{
      0.7, fmt::format("{} fits this GPU, so what is missing is the kernel itself", name(chosen.candidate))};
}

std::optional<Match> driver_too_old_for_image(const Facts& facts) {
  if (!judgeable(facts) || !facts.driver.cuda.known()) return std::nullopt;
  // Without a code, as of a file that is only looked at, the images alone tell it.
  if (!facts.call.codes.empty() && !facts.call.has(200) && !facts.call.has(209)) return std::nullopt;
  const image::Selection selection = select(facts.images.list, facts, facts.driver.switches);
  if (selection.choice == Choice::none) return std::nullopt;
  const ImageFact& chosen = facts.images.list[selection.index];
  // Within a CUDA major version an older driver reads newer cubins; beyond it, it does not.
  if (chosen.candidate.kind == ImageKind::cubin && chosen.toolkit.major > facts.driver.cuda.major) {
    return Match{
        0.9,
        fmt::format("The cubin for {} fits, but CUDA {} built it, and this driver is for CUDA {}: cubins "
                    "of a later CUDA major version are not read",
                    name(chosen.candidate), name(chosen.toolkit), name(facts.driver.cuda))};
  }
  if (image::driver_reads(chosen.compression, facts.driver.cuda)) return std::nullopt;
  return Match{
      0.85,
      fmt::format("The image fits, but is compressed with Zstandard, which drivers before CUDA 12.4 do not "
                  "read; this one is for CUDA {}",
                  name(facts.driver.cuda))};
}

std::optional<Match> invalid_image(const Facts& facts) {
  const bool unreadable = facts.call.has(200) || facts.call.has(218) || facts.call.has(300);
  if (!facts.call.codes.empty() && !unreadable && !facts.call.has(209)) return std::nullopt;
  if (!facts.images.damage.empty()) {
    return Match{unreadable ? 0.95 : 0.6,
                 fmt::format("kshim's parser also rejects the image: {}", facts.images.damage)};
  }
  if (!unreadable || !judgeable(facts) || choice(facts, facts.driver.switches) == Choice::none)
    return std::nullopt;
  return Match{0.6, "An image of the right architecture is there, but the driver could not use it"};
}

// Libraries that look for the best of many kernels ask for some that this GPU does not have. Any program
// looks a variable up to find out whether it is there (GCC's libgomp).
std::optional<Match> benign_probe(const Facts& facts) {
  if (facts.call.for_variable && facts.call.has(500) && facts.call.went_on && !nothing_fits(facts))
    return Match{
        0.95, "The call asked the image for a variable that it does not have, and nothing else of it failed"};
  // A program may look into its cache by loading the file that it would have made.
  if (facts.call.stage == "load" && facts.call.has(core::kFileNotFound) && facts.call.went_on)
    return Match{0.9, "The file that the call names is not there, and the program went on without it"};
  // cuBLAS and cuDNN, linked in: before CUDA 11.7 the runtime loads each of the file's modules at its start,
  // and looks up all of their kernels.
  const bool refused = facts.call.stage == "query" ? facts.call.has(1) : about_images(facts);
  if (facts.call.of_collection && facts.call.went_on && refused)
    return Match{
        facts.call.kept_by_runtime ? 0.98 : 0.9,
        "The file has modules for one GPU each, those for this GPU were loaded, and no launch failed"};
  const bool asks = facts.call.stage == "load" || facts.call.stage == "lookup" || facts.call.stage == "query";
  // Asking what the GPU allows has refusals among its answers: cuBLAS tries cluster sizes (912), cuDNN of
  // CUDA 13.2 asks a driver of 13.0 for attributes that it does not know (1).
  const bool harmless =
      about_images(facts) || (facts.call.stage == "query" && (beyond_limits(facts) || facts.call.has(1)));
  if (!asks || !facts.call.probing || !facts.call.went_on || !harmless) return std::nullopt;
  return Match{0.98,
               "A library that tries images and kernels before it settles on one made the call, and nothing "
               "of it failed "
               "to launch"};
}

constexpr std::array kRules = {
    RuleRow{Cause::benign_probe, benign_probe},
    RuleRow{Cause::fork_after_init, fork_after_init},
    RuleRow{Cause::driver_too_old, driver_too_old},
    RuleRow{Cause::no_device, no_driver},
    RuleRow{Cause::context_mismatch, foreign_handle},
    RuleRow{Cause::launch_resources, refused_configuration},
    RuleRow{Cause::nvrtc_arch_unsupported, nvrtc_arch_unsupported},
    RuleRow{Cause::sass_bypassed, sass_bypassed},
    RuleRow{Cause::ptx_jit_disabled, ptx_jit_disabled},
    RuleRow{Cause::jit_compiler_missing, jit_compiler_missing},
    RuleRow{Cause::ptx_newer_than_driver, ptx_newer_than_driver},
    RuleRow{Cause::arch_specific_image, arch_specific_image},
    RuleRow{Cause::ptx_newer_than_device, ptx_newer_than_device},
    RuleRow{Cause::stale_cache_artifact, stale_cache_artifact},
    RuleRow{Cause::no_image_for_arch, no_image_for_arch},
    RuleRow{Cause::kernel_missing_from_image, kernel_missing},
    RuleRow{Cause::driver_too_old_for_image, driver_too_old_for_image},
    RuleRow{Cause::invalid_image, invalid_image},
};

// A code by itself. Where the module's images are known and fit, "no image" cannot be the answer.
std::optional<Diagnosis> by_code(const Facts& facts) {
  for (const int code : facts.call.codes) {
    for (const data::CodeCauseRow& row : data::code_causes()) {
      if (row.code != code) continue;
      double confidence = row.confidence;
      const bool refuted = row.cause == Cause::no_image_for_arch && judgeable(facts) &&
                           choice(facts, facts.driver.switches) != Choice::none;
      if (refuted) confidence = facts.images.scope == ImageScope::module ? 0.2 : 0.4;
      return Diagnosis{row.cause, {confidence, std::string(row.tells)}};
    }
    for (const data::CodeMeaningRow& row : data::code_meanings())
      if (row.code == code) return Diagnosis{row.cause, {row.confidence, std::string(row.tells)}};
  }
  return std::nullopt;
}

}  // namespace

std::span<const RuleRow> rules() { return kRules; }

std::string_view headline_of_code(int code, Cause cause) {
  const auto of = [code](const auto& rows) {
    const auto* row = data::first_row(rows, [code](const auto& each) { return each.code == code; });
    return row == nullptr ? std::string_view() : row->headline;
  };
  if (cause == Cause::driver_mismatch || cause == Cause::context_mismatch) return of(data::code_causes());
  if (cause != Cause::unknown && cause != Cause::device_fault) return {};
  const std::string_view meaning = of(data::code_meanings());
  return meaning.empty() && cause == Cause::device_fault ? of(data::code_causes()) : meaning;
}

Diagnosis diagnosis_of(const Facts& facts) {
  Diagnosis best;
  for (const RuleRow& row : kRules) {
    auto match = row.apply(facts);
    if (match && core::logs_debug())
      core::log_debug(fmt::format("rule {}: {:.2f}: {}", row_of(row.cause).name, match->confidence,
                                  core::sanitize(match->because)));
    if (match && match->confidence > best.match.confidence) best = {row.cause, std::move(*match)};
  }
  if (auto coded = by_code(facts); coded && coded->match.confidence > best.match.confidence)
    best = std::move(*coded);
  if (best.match.confidence < kNameable) {
    return {Cause::unknown, {0.3, "The evidence fits several causes"}};
  }
  return best;
}

}  // namespace kshim::diagnose
