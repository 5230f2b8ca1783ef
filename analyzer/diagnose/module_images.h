// SPDX-License-Identifier: Apache-2.0
// The images a failure or gap is about, from the best source there is: the file itself, the report's gap, the
// report's list of the whole file.
#pragma once
#include <string>
#include <vector>

#include "analyzer/core/facts.h"
#include "analyzer/input/report/report_index.h"

namespace kshim::analysis {

struct ModuleImages {
  std::vector<ImageFact> images;
  ImageScope scope = ImageScope::none;
  std::string damage;
  std::string source;                  ///< a clause: "read from the file", "as the report says"
  std::uint32_t line = 0;              ///< of the report, where it says so
  std::vector<FileImage> file_images;  ///< with kernels, where the file was read
  bool complete_kernels = false;       ///< file_images names every kernel
  image::Version toolkit;
};

struct ModuleQuestion {
  const ObjectRecord* object = nullptr;
  std::optional<std::uint64_t> offset;
  const GapRecord* gap = nullptr;
  std::string kernel;                    ///< mangled; may be empty
  const ModuleRecord* module = nullptr;  ///< of code that lies in no file
};

ModuleImages find_images(const ModuleQuestion& question, ObjectFiles& files);

/// Kernels of the module for which nothing fits the device of `facts`, mangled, `first` in front.
std::vector<std::string> lacking_kernels(const ModuleImages& module, const Facts& facts,
                                         const std::string& first);

}  // namespace kshim::analysis
