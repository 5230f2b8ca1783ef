// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "analyzer/render/share_place.h"
#include "analyzer/verbs/scan.h"

namespace kshim::scan {

/// The findings of a scan with the file that is on disk, and the member inside it.
std::vector<analysis::PlacedFinding> placed(const Scan& scan, const analysis::SourceRoot& root);

}  // namespace kshim::scan
