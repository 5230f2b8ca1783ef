// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "analyzer/render/share_page.h"
#include "analyzer/verbs/analysis.h"

namespace kshim::analysis {

/// The whole page of an analysis that for_sharing() made ready.
void share_analysis(const Analysis& analysis, SharePage& page);
/// "kshim 0.1.0 (abcdef0)", at the foot of every page.
void share_footer(SharePage& page);

}  // namespace kshim::analysis
