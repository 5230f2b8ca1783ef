// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "analyzer/render/share_page.h"
#include "analyzer/verbs/scan.h"

namespace kshim::scan {

/// The scan as a page of Markdown or HTML: findings, files by architectures, files by targets. Home folders
/// are shortened unless `full`.
void share_scan(const Scan& scan, bool full, analysis::SharePage& page);

}  // namespace kshim::scan
