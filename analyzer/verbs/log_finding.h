// SPDX-License-Identifier: Apache-2.0
// From what was judged of a log to a finding.
#pragma once

#include "analyzer/diagnose/log_diagnosis.h"

namespace kshim::verbs {

/// `log`: its name, for the places of lines; empty where it has none.
Finding log_finding(const LogFacts& clues, const Judgment& judgment, const std::string& log);
/// Of a GPU that a log names.
Device device_of(const DeviceMention& clue);
/// The driver's name for it, where it has one.
const char* name_of(const CudaError& error);

}  // namespace kshim::verbs
