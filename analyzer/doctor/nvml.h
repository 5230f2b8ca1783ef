// SPDX-License-Identifier: Apache-2.0
// Questions to the driver by libnvidia-ml.so.1, which comes with it.
#pragma once
#include <string>
#include <vector>

#include "analyzer/doctor/facts.h"

namespace kshim::doctor {

struct NvmlAnswers {
  bool answered = false;
  std::string error;  ///< why not, where the library is there: "Driver/library version mismatch"
  std::string driver;
  image::Version cuda;
  std::vector<Gpu> gpus;
};
/// Loads the library at `path`.
NvmlAnswers ask_nvml(const std::string& path);

}  // namespace kshim::doctor
