// SPDX-License-Identifier: Apache-2.0
// The rules and their sources are in include/kshim/image/compat_rules.def.
#include "kshim/image/select.h"

#include "kshim/image/compute_capability.h"

namespace kshim::image {
namespace {

constexpr RuleText kRules[] = {
#define KSHIM_RULE(id, name, text, evidence, source) {id, #name, text, evidence, source},
#include "kshim/image/compat_rules.def"
#undef KSHIM_RULE
};

std::span<const PtxIsaRow> isas() noexcept { return compat_tables().isas; }

constexpr int kInvalidPtx = 218;
constexpr int kCompilerMissing = 221;
constexpr int kUnsupportedPtx = 222;
constexpr int kJitDisabled = 223;
constexpr int kNoBinary = 209;

constexpr Verdict accept(Rule rule) noexcept { return {true, rule}; }
constexpr Verdict refuse(Rule rule) noexcept { return {false, rule}; }

constexpr ComputeCapability kThorOld{10, 1};
constexpr ComputeCapability kThor{11, 0};
constexpr bool is_thor(ComputeCapability cc) noexcept { return cc == kThor || cc == kThorOld; }
/// Two names of one chip.
constexpr bool renamed(ComputeCapability image, ComputeCapability device) noexcept {
  return image != device && is_thor(image) && is_thor(device);
}

Verdict judge_family(ComputeCapability image, ComputeCapability device, Rule rule) noexcept {
  if (renamed(image, device)) return accept(Rule::thor_renamed);
  return {in_family(image, device), rule};
}

Verdict judge_cubin(Arch arch, ComputeCapability device) noexcept {
  const ComputeCapability image = arch.cc;
  if (arch.suffix == Suffix::f) return judge_family(image, device, Rule::family_specific);
  if (arch.suffix == Suffix::a) {
    if (renamed(image, device)) return accept(Rule::thor_renamed);
    return {image == device, Rule::arch_specific};
  }
  if (renamed(image, device)) return accept(Rule::thor_renamed);
  if (image.major == device.major && image != device) {
    if (is_thor(image) || is_thor(device)) return refuse(Rule::thor_alone);
    if (is_tegra(image) || is_tegra(device)) return refuse(Rule::tegra_exact);
  }
  if (image == device && is_tegra(device) && !is_thor(device)) return accept(Rule::tegra_exact);
  return {image.major == device.major && image.minor <= device.minor, Rule::same_major};
}

/// May this PTX be compiled for the device, by its target alone?
Verdict judge_target(Arch arch, const Platform& platform) noexcept {
  const ComputeCapability image = arch.cc;
  const ComputeCapability device = platform.device;
  if (arch.suffix == Suffix::f) return judge_family(image, device, Rule::ptx_family_specific);
  if (renamed(image, device)) return accept(Rule::thor_renamed);
  if (arch.suffix == Suffix::a) return {image == device, Rule::ptx_arch_specific};
  if (image > device) return refuse(Rule::ptx_forward);
  const Version driver = platform.driver.known() ? platform.driver : isas().back().cuda;
  return accept(dropped_by(image, driver) ? Rule::old_ptx_stays_valid : Rule::ptx_forward);
}

bool isa_readable(Version isa, Version driver) noexcept {
  if (!isa.known() || !driver.known() || driver > isas().back().cuda)
    return true;  // no known rule forbids it
  // Drivers older than the table: all that is known is that the table's first row is beyond them.
  if (driver < isas().front().cuda) return isa < isas().front().isa;
  return isa <= ptx_isa_of_cuda(driver);
}

Verdict judge_ptx(const Candidate& image, const Platform& platform) noexcept {
  const Verdict target = judge_target(image.arch, platform);
  if (!target.fits) return target;
  const JitSwitches& jit = platform.jit;
  if (jit.disable_ptx_jit) return refuse(Rule::disable_ptx_jit);
  if (jit.disable_jit) return refuse(Rule::disable_jit);
  if (!jit.compiler_present) return refuse(Rule::compiler_missing);
  if (!isa_readable(image.isa, platform.driver)) return refuse(Rule::ptx_isa_gate);
  if (image.isa.known() && image.isa < first_isa_of(image.arch)) return refuse(Rule::ptx_version_too_old);
  return target;
}

/// tileiras 13.1 to 13.5 compile for these and later GPUs.
constexpr ComputeCapability kFirstTileDevice{8, 0};
/// Bytecode versions are those of the toolkits, from 13.1 on.
Verdict judge_tileir(const Candidate& image, const Platform& platform) noexcept {
  if (platform.device < kFirstTileDevice) return refuse(Rule::tileir_compiled);
  if (platform.driver.known() && platform.driver < image.isa) return refuse(Rule::tileir_version);
  return accept(Rule::tileir_compiled);
}

/// 0 if the rule is not about the whole container. The larger one wins: see rule N2.
struct Refusal {
  int error = kNoBinary;
  int rank = 0;
};
constexpr Refusal refusal_of(Rule rule) noexcept {
  switch (rule) {
    case Rule::disable_ptx_jit:
    case Rule::disable_jit:
      return {kJitDisabled, 4};
    case Rule::compiler_missing:
      return {kCompilerMissing, 3};
    case Rule::ptx_isa_gate:
      return {kUnsupportedPtx, 2};
    case Rule::ptx_version_too_old:
      return {kInvalidPtx, 1};
    default:
      return {};
  }
}

constexpr int rank_of(Suffix suffix) noexcept {
  return suffix == Suffix::a ? 2 : suffix == Suffix::f ? 1 : 0;
}

/// Is `left` the better cubin, and by which rule? An equal one is not better: the first stays.
constexpr bool better_cubin(const Arch& left, const Arch& right) noexcept {
  if (left.cc != right.cc) return left.cc > right.cc;
  return rank_of(left.suffix) > rank_of(right.suffix);
}
constexpr bool better_ptx(const Candidate& left, const Candidate& right) noexcept {
  if (left.arch != right.arch) return better_cubin(left.arch, right.arch);
  return left.isa > right.isa;
}

/// The best image of one kind, and the rule that set it apart from the others.
struct Best {
  bool found = false;
  std::uint32_t index = 0;
  Rule rule{};
};
Best best_of(std::span<const Candidate> images, const Platform& platform, ImageKind kind) noexcept {
  Best best;
  for (std::uint32_t index = 0; index < images.size(); ++index) {
    const Candidate& image = images[index];
    if (image.kind != kind) continue;
    const Verdict verdict = judge(image, platform);
    if (!verdict.fits) continue;
    if (!best.found) {
      best = {true, index, verdict.rule};
      continue;
    }
    const Candidate& holder = images[best.index];
    if (kind != ImageKind::cubin) {
      if (image.arch == holder.arch && image.isa == holder.isa) continue;
      best.rule = Rule::highest_ptx;
      if (better_ptx(image, holder)) best.index = index;
    } else if (image.arch != holder.arch) {
      best.rule = image.arch.cc != holder.arch.cc ? Rule::closest_minor : Rule::specific_first;
      if (better_cubin(image.arch, holder.arch)) best.index = index;
    }
  }
  return best;
}

}  // namespace

const RuleText& rule_text(Rule rule) noexcept { return kRules[static_cast<std::size_t>(rule)]; }

Verdict judge(const Candidate& image, const Platform& platform) noexcept {
  switch (image.kind) {
    case ImageKind::cubin: {
      const Verdict verdict = judge_cubin(image.arch, platform.device);
      if (!verdict.fits) return verdict;
      if (platform.jit.force_ptx_jit) return refuse(Rule::force_ptx_jit);
      if (platform.jit.force_jit) return refuse(Rule::force_jit);
      return verdict;
    }
    case ImageKind::ptx:
      return judge_ptx(image, platform);
    case ImageKind::tileir:
      return judge_tileir(image, platform);
    case ImageKind::ltoir:
      break;
  }
  return refuse(Rule::ltoir_not_executable);
}

Selection select_image(std::span<const Candidate> images, const Platform& platform,
                       Packaging packaging) noexcept {
  const Best cubin = best_of(images, platform, ImageKind::cubin);
  const Best ptx = best_of(images, platform, ImageKind::ptx);
  if (cubin.found) {
    // With one cubin and PTX beside it, what decided is that SASS comes first.
    const bool ordered = cubin.rule == Rule::closest_minor || cubin.rule == Rule::specific_first;
    return {Choice::sass, cubin.index, ptx.found && !ordered ? Rule::sass_before_ptx : cubin.rule, 0};
  }
  if (ptx.found) return {Choice::jit, ptx.index, ptx.rule, 0};
  if (const Best tile = best_of(images, platform, ImageKind::tileir); tile.found)
    return {Choice::jit, tile.index, Rule::tileir_compiled, 0};
  Selection none{Choice::none, 0, Rule::nothing_fits, kNoBinary};
  Refusal strongest;
  bool contested = false;
  for (const Candidate& image : images) {
    const Rule rule = judge(image, platform).rule;
    const Refusal refusal = refusal_of(rule);
    if (strongest.rank != 0 && refusal.rank != 0 && refusal.rank != strongest.rank) contested = true;
    if (refusal.rank > strongest.rank) {
      strongest = refusal;
      none.rule = rule;
    } else if (strongest.rank == 0 && (rule == Rule::force_ptx_jit || rule == Rule::force_jit)) {
      none.rule = rule;
    }
  }
  if (packaging == Packaging::loose && images.size() == 1 && images[0].kind == ImageKind::ptx &&
      strongest.rank == 0)
    return {Choice::none, 0, Rule::loose_ptx_misfit, kInvalidPtx};
  none.error = strongest.error;
  if (contested) none.rule = Rule::refusal_order;
  return none;
}

Version ptx_isa_of_cuda(Version cuda) noexcept {
  Version isa;
  if (cuda > isas().back().cuda) return isa;
  for (const PtxIsaRow& row : isas())
    if (row.cuda <= cuda) isa = row.isa;
  return isa;
}

Version cuda_of_ptx_isa(Version isa) noexcept {
  for (const PtxIsaRow& row : isas())
    if (row.isa == isa) return row.cuda;
  return {};
}

}  // namespace kshim::image
