// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>

#include "analyzer/core/finding.h"
#include "analyzer/render/share_page.h"

namespace kshim::analysis {

/// "2 errors and 1 warning"; empty without findings of these.
std::string counted_findings(std::span<const Finding> findings);
/// The title and the fixes as plain lines.
std::string message_text(const Finding& finding);
/// The fixes, each with a heading, and what will not help.
void share_fixes(const Finding& finding, SharePage& page);
/// What it is, where, which images there are, and what to do: without a heading of its own.
void share_finding_body(const Finding& finding, SharePage& page);
/// The titles of the findings, where the page has links.
void share_contents(std::span<const Finding> findings, SharePage& page);
/// A section a finding, most severe first; the findings were made ready by for_sharing().
void share_findings(std::span<const Finding> findings, SharePage& page);
/// A list as far as the page's limits go, then how many more there are.
void share_list(const std::vector<std::string>& items, bool as_code, SharePage& page);

}  // namespace kshim::analysis
