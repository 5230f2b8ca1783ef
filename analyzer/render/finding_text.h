// SPDX-License-Identifier: Apache-2.0
// One finding on a page.
#pragma once
#include <string>

#include "analyzer/render/page.h"

namespace kshim::analysis {

/// "saxpy cannot run: build/saxpy has no code for NVIDIA GeForce GTX 1080 (6.1)"
std::string title_of(const Finding& finding);
Tone tone_of(Severity severity);

/// All a person needs: title, where, images, fixes, evidence. `verbose` lifts the limits on lists.
void print_finding(const Finding& finding, bool verbose, Page& page);
/// Title, place and the first fix.
void print_brief(const Finding& finding, Page& page);

}  // namespace kshim::analysis
