// SPDX-License-Identifier: Apache-2.0
// Conditions on GPUs as containers and packages write them: "arch>=7.5,arch<=9.0 arch>=12.0" of
// NVIDIA_REQUIRE_* (what stands between commas has to hold, of what blanks part one), ">=7.5,<=9.0|>=12.0" of
// conda.
#pragma once
#include <optional>

#include "kshim/image/arch.h"

namespace kshim::core {

enum class Conditions : std::uint8_t { nvidia_require, conda };

/// Whether a GPU, and the CUDA version of its driver (unknown: of any), meet them. A condition on something
/// else, as driver and brand of NVIDIA_REQUIRE_*, is taken to be met. nullopt for a text of no such form.
std::optional<bool> meets(image::ComputeCapability gpu, image::Version cuda, Conditions form,
                          std::string_view text);

}  // namespace kshim::core
