// SPDX-License-Identifier: Apache-2.0
// Selects the image that the driver uses for a device, or the error that it returns if none fits. The shim,
// the command and the simulator use the same pure function. Every rule is a row of compat_rules.def with its
// source. No heap.
#pragma once
#include <cstdint>
#include <span>

#include "kshim/image/arch.h"

namespace kshim::image {

enum class Rule : std::uint8_t {
#define KSHIM_RULE(id, name, text, evidence, source) name,
#include "kshim/image/compat_rules.def"
#undef KSHIM_RULE
};
struct RuleText {
  const char* id;  ///< C1, P4, E2 ...
  const char* name;
  const char* text;      ///< the rule in one sentence
  const char* evidence;  ///< documented, measured, reported or assumed
  const char* source;
};
const RuleText& rule_text(Rule rule) noexcept;

struct Candidate {
  ImageKind kind = ImageKind::cubin;
  Arch arch;
  Version isa;  ///< of PTX, or the bytecode version of Tile IR; unknown means "not read", which never
                ///< disqualifies
  /// A driver that accepts one accepts the other.
  constexpr bool operator==(const Candidate&) const = default;
};

/// CUDA_FORCE_PTX_JIT and its relatives, and whether the driver's PTX compiler library is there.
struct JitSwitches {
  bool force_ptx_jit = false;    ///< CUDA_FORCE_PTX_JIT=1: every cubin is ignored
  bool disable_ptx_jit = false;  ///< CUDA_DISABLE_PTX_JIT=1: every PTX is ignored
  bool force_jit = false;        ///< CUDA_FORCE_JIT, overridden by force_ptx_jit
  bool disable_jit = false;      ///< CUDA_DISABLE_JIT, overridden by disable_ptx_jit
  bool compiler_present = true;  ///< libnvidia-ptxjitcompiler.so.1
  bool operator==(const JitSwitches&) const = default;
};

struct Platform {
  ComputeCapability device;
  Version driver;  ///< CUDA version the driver reports; unknown = newest
  JitSwitches jit;
};

enum class Choice : std::uint8_t { sass, jit, none };

struct Selection {
  Choice choice = Choice::none;
  std::uint32_t index = 0;  ///< into the candidates; meaningless for Choice::none
  Rule rule{};              ///< the rule that decided
  int error = 0;            ///< CUresult the driver answers for Choice::none: 209, 218, 221, 222, 223; else 0
};

/// Why one image does or does not fit; `fits` ignores switches when they are at their defaults.
struct Verdict {
  bool fits = false;
  Rule rule{};
};
Verdict judge(const Candidate& image, const Platform& platform) noexcept;
/// The driver selects an image from a fatbin. It compiles a loose PTX text directly.
enum class Packaging : std::uint8_t { fatbin, loose };
Selection select_image(std::span<const Candidate> images, const Platform& platform,
                       Packaging packaging = Packaging::fatbin) noexcept;

/// Newest PTX ISA that the compiler of a driver (or toolkit) of this CUDA version reads.
Version ptx_isa_of_cuda(Version cuda) noexcept;
/// Oldest CUDA version whose toolkit emits (and whose driver reads) this PTX ISA; unknown when no row has it.
Version cuda_of_ptx_isa(Version isa) noexcept;

}  // namespace kshim::image
