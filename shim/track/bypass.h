// SPDX-License-Identifier: Apache-2.0
// Files whose calls to CUDA did not come through the shim although it is in the process: loaded with
// RTLD_DEEPBIND, which puts a library's own dependencies before every preload, or into a namespace of their
// own (dlmopen), where there is no preload. What such files did cannot be recorded; that they were there can.
#pragma once
#include "guest/locked.h"
#include "track/object_records.h"

namespace kshim::shim {

/// A `bypass` record, once a report, for a runtime before 12 whose loads are not recorded. Under the shim's
/// lock.
void write_unwatched_runtime(const Locked& locked, Report& report) noexcept;

// For the end of a process through its destructors.

/// Whether a driver or a second namespace is mapped at all. All processes are asked that.
bool may_be_bypassed() noexcept;
/// Whether such a file is mapped. Call it once. `driver`: the process is known to have used one. Where one is
/// mapped, this reads the dynamic linker's list, for a limited time.
bool find_bypasses(bool driver) noexcept;
/// A `bypass` record for each file found, in a report that is begun for it where there is none. Under the
/// shim's lock.
void write_bypasses(Report& report, ObjectRecords& objects) noexcept;

}  // namespace kshim::shim
