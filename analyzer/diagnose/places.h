// SPDX-License-Identifier: Apache-2.0
// Whose code a frame is: the user's own, a framework's, the system's. And where a file comes from.
#pragma once

#include "analyzer/diagnose/scene.h"

namespace kshim::diagnose {

/// The user's own places in a failure's stacks, best first: innermost Python frame, then native frames. May
/// be empty.
std::vector<core::Place> own_places(const input::FailureRecord& failure, const input::Report& report,
                                    input::ObjectFiles& files);
/// Whether the innermost frame outside CUDA itself belongs to a library that is known to try and go on.
bool called_by_probing_library(const input::FailureRecord& failure);
/// The release in the name of the libcudart.so that made the call; nullopt for any other caller. From 11.0
/// on, what it does not handle is another failure in the report, its caller's.
std::optional<image::Version> calling_runtime(const input::FailureRecord& failure);
constexpr image::Version kFirstWatchedRuntime{11, 0};
/// Whether a report's name of a call is one of slots.def, by which only runtimes before 12 call.
bool is_slot(std::string_view api);
/// How a person is told of the call: such a slot has no name.
std::string shown_call(const std::string& api);

/// Whether the kernel's host stub is on the stack, as under <<<>>>: a launch, whatever call of it failed.
bool launched_by_stub(const input::FailureRecord& failure, input::ObjectFiles& files);

struct OriginFacts {
  Origin origin = Origin::program;
  std::string build_folder;
};
OriginFacts origin_of(std::string_view object_path);

// The package that put a failing file there.

/// Whether the report was written here: databases of this machine tell of another's files only where these
/// are the same.
/// The object's owner: as the report says, else as the packages of this machine do, for the very file or, of
/// a report of this machine, for what had been there.
std::optional<input::PackageRecord> package_of(const Scene& scene, const input::ObjectRecord& object);
/// The same by the records of this machine alone, whatever the report says.
std::optional<input::PackageRecord> package_here(const Scene& scene, const input::ObjectRecord& object);
input::PackageRecord record_of(const owner::Package& package, std::uint64_t object);
/// "torch 2.9.1 (pip)".
core::PackageName package_name(const input::PackageRecord& package);
/// What is worth saying of the owner beyond its name, and which file was read in place of the object's own.
std::vector<core::Evidence> owner_evidence(const Scene& scene, const input::ObjectRecord& object);

}  // namespace kshim::diagnose
