// SPDX-License-Identifier: Apache-2.0
// `kshim run` writes down which packages own the objects of a report, while the files are at hand: where the
// report is read later, they may not be. And how the program ended, which its shim cannot know.
#pragma once
#include "analyzer/diagnose/scene.h"

namespace kshim::verbs {

/// Appends a `package` record for each object of the scene's report whose very file lies here and belongs to
/// a package, and an `exit` record where it is the report of the program that the caller ran. Nothing is
/// written to the report of a process that still runs, and nothing twice.
void add_records(const diagnose::Scene& scene);

}  // namespace kshim::verbs
