// SPDX-License-Identifier: Apache-2.0
// All that the shim knows, in one piece of memory that is mapped when CUDA is first used, behind one lock.
// SlowPath is the only way in: it blocks all signals, refuses re-entry, switches to the scratch stack and
// takes the lock.
#pragma once
#include "cuda/driver_info.h"
#include "failure/failures.h"
#include "failure/gaps.h"
#include "failure/last_error_tracking.h"
#include "guest/errno_keeper.h"
#include "guest/locked.h"
#include "guest/reentry_guard.h"
#include "guest/scratch_stack.h"
#include "report/report_file.h"
#include "track/compiler_process.h"
#include "track/handle_names.h"
#include "track/modules.h"
#include "track/object_records.h"

namespace kshim::shim {

/// Zeroed memory is an empty State. Only SlowPath gives one: code that has a State&, or a reference to a
/// member, holds the lock.
struct State {
  ScratchStack stack;
  Report report;
  DriverInfo driver;
  ObjectRecords objects;
  Modules modules;
  HandleNames handles;
  Gaps gaps;
  Failures failures;
  ErrorReads error_reads;
  CompilerProcess compiler;
  Locked locked;

  Gaps::Scene gap_scene() noexcept { return {report, driver, objects}; }
  Failures::Scene failure_scene() noexcept { return {report, driver, objects, modules, handles, gaps}; }
};

/// Whether this process, or its parent before fork, has used CUDA. Needs no lock.
bool is_state_mapped() noexcept;

/// SlowPath().run([&](State& state) { ... });
class SlowPath {
 public:
  explicit operator bool() const noexcept { return static_cast<bool>(guard_); }

  /// Calls work(state). False in a handler that has interrupted the shim, and where the lock or the memory is
  /// unavailable: one dropped record is counted.
  bool run(FunctionRef<void(State&)> work) const noexcept {
    const bool called = guard_ && enter(true, work);
    if (!called) count_dropped();
    return called;
  }
  /// The same for work that writes no record.
  void look(FunctionRef<void(State&)> work) const noexcept {
    if (guard_) enter(true, work);
  }
  /// The same without waiting. False where nothing was called.
  [[nodiscard]] bool try_run(FunctionRef<void(State&)> work) const noexcept {
    return guard_ && enter(false, work);
  }

 private:
  static bool enter(bool wait, FunctionRef<void(State&)> work) noexcept;

  const ErrnoKeeper keeper_;
  const ReentryGuard guard_;
};

}  // namespace kshim::shim
