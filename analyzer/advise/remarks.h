// SPDX-License-Identifier: Apache-2.0
// What is true and useful beside the ways out: that the driver is fine, or that no rebuild mends it.
#pragma once
#include "analyzer/advise/gpu_driver.h"

namespace kshim::analysis {

/// People would suspect the driver: whether it is fine is worth saying.
bool asks_for_the_driver(const AdviceInput& at);
void add_remarks(const AdviceInput& at, Serving serving, Advice& advice);
/// A driver, toolkit, PTX or GPU that the answer depends on, and that is newer than the tables.
void add_newer_than_known(const AdviceInput& at, std::vector<std::string>& remarks);

}  // namespace kshim::analysis
