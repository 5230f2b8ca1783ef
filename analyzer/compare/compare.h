// SPDX-License-Identifier: Apache-2.0
// The parts of compare().
#pragma once
#include "analyzer/compare/diff.h"

namespace kshim::diff {

/// What became of the images of an object that is on both sides, and what that means for GPUs.
void compare_images(const Pair& pair, std::size_t number, const Options& options,
                    std::vector<Change>& changes);
/// The findings of both sides, by cause and by the objects that belong together.
void compare_findings(const Options& options, Diff& diff);
/// How an object does on a GPU: as its modules were judged, else by its images alone.
scan::Outcome outcome_on(const Object& object, image::Arch target, image::Version driver);
/// "had its own code", "was compiled from PTX" ...
std::string outcome_text(scan::Outcome outcome, bool before);

}  // namespace kshim::diff
