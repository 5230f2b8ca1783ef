// SPDX-License-Identifier: Apache-2.0
// GPUs by the names under which people and tools speak of them.
#pragma once
#include <stdexcept>

#include "analyzer/core/prelude.h"
#include "kshim/image/arch.h"

namespace kshim::data {

struct GpuName {
  std::string name;
  image::ComputeCapability cc;
  bool chip = false;  ///< "GA102", as lspci and the driver's kernel module say
};
/// One pattern that finds every name, the longest where several fit.
std::string gpu_name_pattern();
/// In the order in which they stand there, names before chips: "GA102 [GeForce RTX 3090]".
std::vector<GpuName> gpus_named_in(std::string_view text);

/// What a person who typed a name may mean.
struct NamedGpus {
  std::vector<GpuName> found;        ///< one, or several of one compute capability, or of several: ambiguous
  std::vector<std::string> similar;  ///< where nothing was found: names that are spelled alike
  bool ambiguous() const;
};
/// "RTX 5090", "rtx5090", "NVIDIA GeForce RTX 5090", "5090"; a name with all of the words where none is the
/// name.
NamedGpus gpus_called(std::string_view name);
/// One compute capability, by number (8.6, sm_86) or by name. The message says what to give instead, without
/// the option it was given to.
struct GpuChoice {
  image::ComputeCapability cc;
  std::string name;  ///< "RTX 5090"; empty for a number
};
GpuChoice choose_gpu(std::string_view text);
/// Thrown by choose_gpu().
struct UnknownGpu : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace kshim::data
