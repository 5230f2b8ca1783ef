// SPDX-License-Identifier: Apache-2.0
// From what was judged of a log to a finding.
#pragma once

#include "analyzer/diagnose/log_diagnosis.h"

namespace kshim::verbs {

/// `log`: its name, for the places of lines; empty where it has none.
core::Finding log_finding(const input::LogFacts& clues, const diagnose::Judgment& judgment,
                          const std::string& log);
/// Of a GPU that a log names.
core::Device device_of(const input::DeviceMention& clue);
/// The driver's name for it, where it has one.
const char* name_of(const CudaError& error);

}  // namespace kshim::verbs
