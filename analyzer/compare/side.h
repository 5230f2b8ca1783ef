// SPDX-License-Identifier: Apache-2.0
// What read_side() is made of.
#pragma once
#include <string>
#include <string_view>

#include "analyzer/compare/diff.h"

namespace kshim::diff {

/// "torch 2.9.1 (pip)" as torch.
std::string package_name(std::string_view package);
Finding to_diff(const analysis::Finding& finding);
/// The text of a kshim-scan/1 or kshim-analysis/1; false where it is neither, with a clause in side.notes.
bool read_json(const std::string& text, Side& side);

}  // namespace kshim::diff
