// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

/// JSON Schema (2020-12) of a report line, from schema.def.
std::string report_json_schema();
