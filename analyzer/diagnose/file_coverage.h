// SPDX-License-Identifier: Apache-2.0
// The device code of one file against targets: which modules are served, by what, and which kernels lack
// what.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyzer/device_code/device_code.h"
#include "analyzer/device_code/image_counts.h"
#include "kshim/image/cubin.h"

namespace kshim::analysis {

/// A kernel in the images of one architecture, all modules together: the most that any of them takes.
struct KernelUse {
  std::uint16_t label = 0;  ///< index into KernelTable::labels
  std::uint32_t registers = image::KernelInfo::kUnknown;
  std::uint32_t shared_bytes = image::KernelInfo::kUnknown;
  std::uint32_t local_bytes = image::KernelInfo::kUnknown;
  std::uint32_t max_threads = image::KernelInfo::kUnknown;
  std::uint64_t code_bytes = 0;
};

/// One kernel name over all modules of a file.
struct KernelCoverage {
  std::vector<KernelUse> uses;  ///< by label, ascending
  std::uint64_t served = 0;     ///< bit i: on target i some module runs it
};

struct KernelTable {
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  struct Label {
    image::ImageKind kind = image::ImageKind::cubin;
    image::Arch arch;
  };
  std::vector<Label> labels;
  std::unordered_map<std::string, KernelCoverage, Hash, std::equal_to<>> kernels;
  std::vector<std::string> first;  ///< by module: its first kernel
  bool complete = true;            ///< every payload could be read
  std::uint64_t clear_bytes = 0;   ///< of all payloads, decompressed
};

/// How a file does on one target.
struct TargetVerdict {
  image::Arch target;
  std::uint64_t sass = 0;                             ///< modules with a cubin that fits
  std::uint64_t jit = 0;                              ///< modules whose PTX would be compiled
  std::uint64_t lacking = 0;                          ///< modules with kernels and without either
  std::optional<std::uint64_t> kernels_lacking = {};  ///< where kernels were read: names that no module runs
  bool picks = false;  ///< that is how the library is made: it picks other code for this GPU
  bool serves() const noexcept { return picks || kernels_lacking.value_or(lacking) == 0; }
  bool nothing_fits() const noexcept { return sass + jit == 0 && lacking != 0; }
};

struct FileCoverage {
  std::vector<TargetVerdict> targets;
  std::vector<std::vector<std::uint32_t>>
      lacking;                      ///< by target: modules with kernels for which nothing fits
  std::vector<std::string> damage;  ///< payloads that could not be read: clauses with offsets
  image::Version toolkit;           ///< the newest that built a cubin of a lacking module
};

/// Masks of KernelCoverage have so many bits.
constexpr std::size_t kMostTargets = 64;

/// With `table`, reads every payload and fills it; without, only as many as it takes to tell which modules
/// without an image have kernels at all.
FileCoverage cover(const DeviceCode& code, const std::vector<image::Arch>& targets, image::Version driver,
                   KernelTable* table);

}  // namespace kshim::analysis
