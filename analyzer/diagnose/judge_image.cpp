// SPDX-License-Identifier: Apache-2.0
// The words for one line of the architecture table. Whether an image fits is image::judge's; here is only
// why, told with the numbers at hand.
#include <fmt/core.h>

#include "analyzer/diagnose/rules.h"
#include "kshim/image/compute_capability.h"
#include "kshim/image/decompress.h"

namespace kshim::analysis {
namespace {

using image::Candidate;
using image::ComputeCapability;
using image::ImageKind;
using image::Suffix;

std::string name(ComputeCapability cc) { return std::string(image::to_name(cc).view()); }
std::string name(image::Version version) { return std::string(image::to_name(version).view()); }

image::Platform plain(const Facts& facts) { return {*facts.device, facts.driver, {}}; }

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
                     name(image::ptx_isa_of_cuda(facts.driver)));
}

bool jit_forbidden(const image::JitSwitches& on) {
  return on.disable_ptx_jit || (on.disable_jit && !on.force_ptx_jit);
}

}  // namespace

ImageJudgement judge_image(const ImageFact& fact, const Facts& facts) {
  const Candidate& image = fact.candidate;
  if (!facts.device) return {false, "the GPU is not known"};
  if (image.kind == ImageKind::ltoir) return {false, "must be linked before it can run"};
  const bool fits = judge(image, plain(facts)).fits;
  if (!fits && image.kind == ImageKind::tileir) {
    if (judge(base_of(image), plain(facts)).fits)
      return {false, fmt::format("Tile IR {} is newer than the driver compiles", name(image.isa))};
    return {false, "Tile IR compiles for 8.0 and later GPUs only"};
  }
  if (!fits) {
    return {false,
            image.kind == ImageKind::cubin ? why_not_cubin(image, *facts.device) : why_not_ptx(image, facts)};
  }
  if (!judge(image, {*facts.device, facts.driver, facts.switches}).fits) {
    if (image.kind == ImageKind::cubin) return {false, "would fit, but is ignored by a switch", true};
    return {false,
            jit_forbidden(facts.switches) ? "would fit, but a switch forbids compiling"
                                          : "would fit, but the PTX compiler is missing",
            true};
  }
  if (!image::driver_reads(fact.compression, facts.driver))
    return {false, "would fit, but drivers before CUDA 12.4 cannot decompress it", true};
  if (fact.has_kernel == false) return {false, "fits, but lacks the kernel", true};
  return {true, image.kind == ImageKind::cubin ? "fits" : "fits, compiled at load"};
}

image::Selection select(const std::vector<ImageFact>& images, const Facts& facts,
                        const image::JitSwitches& switches) {
  std::vector<Candidate> candidates;
  candidates.reserve(images.size());
  for (const ImageFact& image : images) candidates.push_back(image.candidate);
  return select_image(candidates, {facts.device.value_or(ComputeCapability{}), facts.driver, switches});
}

}  // namespace kshim::analysis
