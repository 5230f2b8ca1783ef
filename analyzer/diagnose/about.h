// SPDX-License-Identifier: Apache-2.0
// Finding::about: the facts that the rules saw, with what only the advice asks for.
#pragma once

#include "analyzer/diagnose/libraries.h"
#include "analyzer/diagnose/places.h"

namespace kshim::diagnose {

/// Whether what failed was fetched as a finished build.
inline bool comes_built(const Facts& at) {
  if (!at.package.source.empty()) return false;
  return at.file.origin == Origin::installed ||
         (at.file.path.empty() && !at.package.name.empty() && !at.package.from_source);
}

/// A .o, by itself or in an archive: nvcc -c made it.
inline bool is_object_file(const Facts::File& file) {
  return !file.archive.empty() || file.path.ends_with(".o") || file.path.ends_with(".obj");
}

/// The newest toolkit that made one of the cubins; unknown = {0, 0}.
image::Version newest_cubin(const Facts::Images& images);

/// `at`, which the rules saw, with the finding's cause, code and object, and what follows from its images.
/// Images::toolkit is that of the newest cubin before, and that of the file after it.
Facts facts_about(const core::Finding& finding, Facts at);

/// A finding of a cause, with the severity of that cause.
core::Finding new_finding(core::Cause cause, double confidence, std::string headline = {});
/// What the finding's fixes depend on: `at`, for its cause.
void set_about(Facts at, core::Finding& finding);

/// What its path tells of the file, and what is linked with it. `path`: in the process or on this machine; of
/// a member, that of the archive. `readable`: where its ELF headers can be read; empty = nowhere.
void complete_file(std::string_view path, const std::string& readable, Facts& at);
/// Whose file it is. Where it came from only `here` may say, what this machine's own records have of it: a
/// report could name anybody's source.
void set_package(const input::PackageRecord& package, const input::PackageRecord* here, Facts& at);

/// The platform of the situation, else the one that the GPU is likeliest in.
std::string platform_of(const Facts& at);

}  // namespace kshim::diagnose
