// SPDX-License-Identifier: Apache-2.0
// kshim doctor: what this machine has of CUDA, which of it a program would get, and what would blind the
// shim.
#pragma once
#include <string>

#include "analyzer/input/machine/facts.h"
#include "analyzer/input/machine/machine.h"
#include "analyzer/verbs/analysis.h"

namespace kshim::doctor {

/// `program` is empty where none is named.
Facts examine(const Machine& machine, const std::string& program);

std::string render_text(const Facts& facts, const analysis::RenderOptions& options);
/// Schema kshim-doctor/1.
std::string render_json(const Facts& facts);

}  // namespace kshim::doctor
