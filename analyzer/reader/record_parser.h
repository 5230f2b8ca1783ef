// SPDX-License-Identifier: Apache-2.0
// One JSON object into the record its `type` names.
#pragma once
#include <simdjson.h>

#include <cstdint>
#include <string>

#include "analyzer/reader/report.h"

namespace kshim::analysis {

/// Adds the record to `report`. A type that is not known is ignored: newer shims may write more. The answer
/// is empty, or says what a known record lacks.
std::string parse_record(simdjson::dom::object object, std::uint32_t line, Report& report);

}  // namespace kshim::analysis
