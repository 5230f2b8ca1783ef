// SPDX-License-Identifier: Apache-2.0
// Questions to the driver by libnvidia-ml.so.1, which comes with it.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "analyzer/input/machine/facts.h"

namespace kshim::doctor {

struct NvmlAnswers {
  bool answered = false;
  std::string error;  ///< why not, where the library is there: "answers: Driver/library version mismatch"
  std::string driver;
  image::Version cuda;
  std::vector<Gpu> gpus;
};
/// Loads the library at `path` into a process of its own: one that does not belong to the kernel module may
/// crash, and one that waits for a dead GPU never answers. With many GPUs, and nobody to keep them awake, the
/// first answer takes 10 s and more.
NvmlAnswers ask_nvml(const std::string& path, std::chrono::seconds patience = std::chrono::seconds(30));

}  // namespace kshim::doctor
