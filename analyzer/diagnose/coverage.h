// SPDX-License-Identifier: Apache-2.0
// What a file has for a GPU: one answer for reports, files and logs.
#pragma once

#include "analyzer/device_code/device_code.h"
#include "analyzer/diagnose/facts.h"
#include "kshim/image/cubin.h"

namespace kshim::diagnose {

/// What a driver does with a module on a GPU.
struct Coverage {
  image::Choice choice = image::Choice::none;
  bool judged = true;      ///< false: no driver is to load the module, or nobody knows
  image::Candidate image;  ///< that is taken
  bool lacks() const noexcept { return judged && choice == image::Choice::none; }
};

/// Judges the modules of a file one after the other. What the driver cannot decompress does not count.
class ModuleCoverage {
 public:
  ModuleCoverage(const device_code::DeviceCode& code, image::Version driver);
  /// False for what is for nvJitLink and not for a driver: LTO-IR alone, and code with LTO-IR that the
  /// program links with its user's own (cuSPARSE, libcudf), beside modules that the CUDA runtime loads.
  bool set(const device_code::CodeModule& module);
  /// Of the module that was set.
  Coverage on(image::ComputeCapability cc) const;
  bool reads(const device_code::CodeImage& image) const;

 private:
  const device_code::DeviceCode& code_;
  image::Version driver_;
  bool any_registered_ = false;
  std::vector<image::Candidate> candidates_;
  bool registered_ = false;
  bool holds_unknown_kind_ = false;
};

/// How a file is made that serves a GPU with some of its modules and is meant to.
enum class ByDesign : std::uint8_t {
  no,
  probing_library,   ///< a library that keeps kernels for some GPUs only, and chooses
  loaded_by_choice,  ///< the program loads these modules by itself: PyTorch 2.15 embeds kernels of CuTe DSL
                     ///< so, one a GPU
  locked,            ///< locked to other GPUs by suffix, beside code that is not
};
/// Of modules without code for a GPU, in a file with `served` modules that have some: those that are missed.
struct Missed {
  std::vector<std::uint32_t> modules;
  ByDesign by_design = ByDesign::no;  ///< why none is
};
Missed missed_modules(std::string_view file, const device_code::DeviceCode& code,
                      std::span<const std::uint32_t> lacking, std::size_t served);

/// The toolkit that built a file, and how that is known: what its cubins say, else the newest PTX, whose
/// version is that of the toolkit. `cubins`: the newest toolkit that they name, unknown where none does.
struct BuiltBy {
  image::Version toolkit;
  std::string how;
};
BuiltBy builder_of(std::span<const ImageFact> images, image::Version cubins);

// The device code of one file against targets: which modules are served, by what, and which kernels lack
// what.

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
};

/// How a file does on one target.
struct TargetVerdict {
  image::Arch target;
  std::uint64_t sass = 0;                             ///< modules with a cubin that fits
  std::uint64_t jit = 0;                              ///< modules whose PTX would be compiled
  std::uint64_t lacking = 0;                          ///< modules with kernels and without either
  std::optional<std::uint64_t> kernels_lacking = {};  ///< where kernels were read: names that no module runs
  bool picks = false;  ///< that is how the library is made: it picks other code for this GPU
  bool for_newer =
      false;  ///< what lacks code begins above this GPU: its source may need what newer ones have
  bool serves() const noexcept { return picks || kernels_lacking.value_or(lacking) == 0; }
  bool nothing_fits() const noexcept { return sass + jit == 0 && lacking != 0; }
};

struct FileCoverage {
  std::vector<TargetVerdict> targets;
  std::vector<std::vector<std::uint32_t>>
      lacking;                      ///< by target: modules with kernels for which nothing fits
  std::vector<std::string> damage;  ///< payloads that could not be read: clauses with offsets
  /// The origin of the modules that lack code.
  struct Makers {
    image::Version toolkit;  ///< the newest that built a cubin of them
    /// The library of NVIDIA's whose code most of them are, linked in from its static archive: "cudnn"; empty
    /// = none. Of CUDA's own libraries the toolkit tells more.
    std::string_view library;
  };
  std::vector<Makers> makers;  ///< by target
  std::uint64_t modules = 0;   ///< with kernels that a driver is to load, whatever the target
  image::Version runtime;      ///< major version of the CUDA runtime that it runs with, where known
};

/// Masks of KernelCoverage have so many bits.
constexpr std::size_t kMaxTargets = 64;

/// With `table`, reads every payload and fills it; without, only as much as it takes to tell which modules
/// have kernels at all. What is said of a target does not depend on the others. `needed`: the libraries that
/// the file is linked with.
FileCoverage cover(const device_code::DeviceCode& code, const std::vector<image::Arch>& targets,
                   image::Version driver, KernelTable* table, const std::vector<std::string>& needed = {});

}  // namespace kshim::diagnose
