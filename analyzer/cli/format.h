// SPDX-License-Identifier: Apache-2.0
// What all commands that print pages have in common.
#pragma once
#include <span>
#include <string>

#include "analyzer/cli/output.h"
#include "analyzer/core/user_error.h"
#include "analyzer/render/formats.h"
#include "analyzer/verbs/analysis.h"

namespace kshim::cli {

/// What --format says; UserError with `status` where that is none of those.
analysis::Format parse_format(const std::string& name,
                              std::span<const analysis::Format> of = analysis::kFormats,
                              int status = exit_status::kMisuse);
/// For what is written there: colors and the terminal's width where a person looks.
analysis::RenderOptions render_options(const Output& output, bool verbose, bool full);

}  // namespace kshim::cli
