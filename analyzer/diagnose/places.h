// SPDX-License-Identifier: Apache-2.0
// Whose code a frame is: the user's own, a framework's, the system's. And where a file comes from.
#pragma once
#include <string_view>
#include <vector>

#include "analyzer/advise/advice.h"
#include "analyzer/core/finding.h"
#include "analyzer/input/report/report_index.h"

namespace kshim::analysis {

/// The user's own places in a failure's stacks, best first: innermost Python frame, then native frames. May
/// be empty.
std::vector<Place> own_places(const FailureRecord& failure, const Report& report, ObjectFiles& files);
/// Whether the innermost frame outside CUDA itself belongs to a library that is known to try and go on.
bool called_by_probing_library(const FailureRecord& failure);

/// Whether the kernel's host stub is on the stack, as under <<<>>>: a launch, whatever call of it failed.
bool launched_by_stub(const FailureRecord& failure, ObjectFiles& files);

struct OriginFacts {
  Origin origin = Origin::program;
  std::string build_folder;
};
OriginFacts origin_of(std::string_view object_path);

}  // namespace kshim::analysis
