// SPDX-License-Identifier: Apache-2.0
// Arguments that name GPUs, as every command takes them.
#pragma once
#include <string>
#include <vector>

#include "analyzer/core/user_error.h"
#include "kshim/image/arch.h"

namespace kshim::cli {

/// "sm_86,12.0", "8.6;12.0" and "H100,RTX 5090", each text a list. UserError with `status` for what is
/// neither an architecture that kshim knows nor the name of one GPU; `option` is its name in the message.
std::vector<image::Arch> parse_archs(std::string_view option, const std::vector<std::string>& texts,
                                     int status = exit_status::kMisuse);
/// "8.6", "sm_86" or "RTX 3090": one compute capability. UserError otherwise.
image::ComputeCapability parse_cc(std::string_view option, const std::string& text);
/// "13.0"; UserError otherwise, also for a number that is no release of CUDA's, as 4.0 and 99.9.
image::Version parse_cuda_version(std::string_view option, const std::string& text);
/// The same of "580" and "580.82.07" too: the newest CUDA version that this driver branch serves.
image::Version parse_driver(std::string_view option, const std::string& text);

}  // namespace kshim::cli
