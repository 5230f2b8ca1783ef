// SPDX-License-Identifier: Apache-2.0
// A driver that does not drive the GPU: nothing else helps before that is mended.
#pragma once
#include "analyzer/advise/advice.h"
#include "analyzer/data/reach.h"

namespace kshim::analysis {

/// What the driver is to the GPU, as far as both are known.
Serving serving_of(const AdviceInput& at);
/// The driver to install, where the one that is there does not drive the GPU.
void add_gpu_driver_fix(const AdviceInput& at, Serving serving, std::vector<Fix>& fixes);
/// The situation once the driver has been mended.
AdviceInput with_serving_driver(const AdviceInput& at, Serving serving);
/// That the driver is fine; or that it is not, and so contradicts that the program met this GPU.
void add_driver_remark(const AdviceInput& at, Serving serving, std::vector<std::string>& remarks);

}  // namespace kshim::analysis
