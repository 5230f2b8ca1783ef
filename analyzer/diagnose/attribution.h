// SPDX-License-Identifier: Apache-2.0
// Who put a failing file there.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "analyzer/diagnose/scene.h"

namespace kshim::analysis {

/// Whether the report was written here: databases of this machine tell of another's files only where these
/// are the same.
bool is_of_this_machine(const Report& report);
/// Who owns the object: as the report says, else as the packages of this machine do, for the very file or, of
/// a report of this machine, for what had been there.
std::optional<PackageRecord> package_of(const Scene& scene, const ObjectRecord& object);
/// The same by the records of this machine alone, whatever the report says.
std::optional<PackageRecord> package_here(const Scene& scene, const ObjectRecord& object);
PackageRecord record_of(const packages::Package& package, std::uint64_t object);
/// "torch 2.9.1 (pip)".
PackageName package_name(const PackageRecord& package);
/// What is worth saying of the owner beyond its name, and which file was read in place of the object's own.
std::vector<Evidence> owner_evidence(const Scene& scene, const ObjectRecord& object);

}  // namespace kshim::analysis
