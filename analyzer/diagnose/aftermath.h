// SPDX-License-Identifier: Apache-2.0
// Errors after the failing call: read by other code, never read, or reported only through a library's
// own status.
#pragma once

#include "analyzer/diagnose/scene.h"

namespace kshim::diagnose {

/// A failure of the report and what it was judged to be.
struct Judged {
  const input::FailureRecord* failure = nullptr;
  core::Cause cause = core::Cause::unknown;
  double confidence = 0;
};

/// stale-error: what a tolerated probe left behind was reported by somebody else.
std::vector<core::Finding> stale_errors(const Scene& scene, const std::vector<Judged>& judged);
/// unchecked-failure: exit status 0 after a failed launch whose error nobody was seen to ask for.
std::optional<core::Finding> unchecked_failure(const Scene& scene, const std::vector<Judged>& judged);
/// library-refuses: the program gave up, no call of its own failed, and an NVIDIA library that it uses has
/// nothing for the GPU. If the program has run code on the GPU, or its exit status is unknown: only a library
/// whose own look-up failed. If it ended well without a kernel: also where nothing that it loaded serves the
/// GPU.
std::optional<core::Finding> refusing_library(const Scene& scene, const std::vector<Judged>& judged,
                                              const std::vector<core::Finding>& known);

/// library-not-found: of a program that never began.
core::Finding missing_library(const MissingLibrary& missing);
/// no-device, for a program that failed before it called any driver: RunFacts::driverless.
core::Finding no_driver(const std::string& program);

/// driver-too-old: a process asked the driver for its version, did not initialize it, and the program gave
/// up.
std::optional<core::Finding> idle_driver(const IdleProcess& process,
                                         const std::optional<image::ComputeCapability>& device,
                                         input::ObjectFiles& files);

/// Whether what a library has for a GPU is no more than helpers: with code in fewer of its modules than one
/// in so many, it refuses the GPU.
bool serves_by_helpers(const ModuleShare& modules);

}  // namespace kshim::diagnose
