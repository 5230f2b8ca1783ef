// SPDX-License-Identifier: Apache-2.0
// Versions of CUDA and of drivers as users write them.
#pragma once

#include "analyzer/core/prelude.h"
#include "analyzer/core/user_error.h"
#include "kshim/image/arch.h"

namespace kshim::data {

/// "13.0"; UserError with `status` otherwise, also for a number that is no release of CUDA's, as 4.0
/// and 99.9. `option` is its name in the message.
image::Version parse_cuda_version(std::string_view option, const std::string& text,
                                  int status = core::exit_status::kMisuse);
/// The same of "580" and "580.82.07" too: the newest CUDA version that this driver branch serves.
image::Version parse_driver(std::string_view option, const std::string& text,
                            int status = core::exit_status::kMisuse);

}  // namespace kshim::data
