// SPDX-License-Identifier: Apache-2.0
// What a file has for a GPU: one answer for reports, files and logs.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/core/facts.h"
#include "analyzer/device_code/device_code.h"
#include "kshim/image/arch.h"
#include "kshim/image/select.h"

namespace kshim::analysis {

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
  ModuleCoverage(const DeviceCode& code, image::Version driver) : code_(code), driver_(driver) {}
  /// False for LTO-IR alone, which is for nvJitLink and not for a driver.
  bool set(const CodeModule& module);
  /// Of the module that was set.
  Coverage on(image::ComputeCapability cc) const;
  bool reads(const CodeImage& image) const;

 private:
  const DeviceCode& code_;
  image::Version driver_;
  std::vector<image::Candidate> candidates_;
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
/// Of modules without code for a GPU, in a file that serves it otherwise (`served`): those that are missed.
struct Missed {
  std::vector<std::uint32_t> modules;
  ByDesign by_design = ByDesign::no;  ///< why none is
};
Missed missed_modules(std::string_view file, const DeviceCode& code, std::span<const std::uint32_t> lacking,
                      bool served);

/// Who built a file, and how that is known: what its cubins say, else the newest PTX, whose version is that
/// of the toolkit. `cubins`: the newest toolkit that they name, unknown where none does.
struct BuiltBy {
  image::Version toolkit;
  std::string how;
};
BuiltBy builder_of(std::span<const ImageFact> images, image::Version cubins);

}  // namespace kshim::analysis
