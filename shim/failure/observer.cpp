// SPDX-License-Identifier: Apache-2.0
// What the wrappers call. A driver failure inside a watched runtime call waits for what the runtime makes of
// it, so that one error at two layers is one failure; everything else is recorded at once.
#include "failure/observer.h"

#include "cuda/call_args.h"
#include "cuda/cuda_libraries.h"
#include "cuda/driver_info.h"
#include "cuda/next_symbol.h"
#include "failure/cudart_frame.h"
#include "failure/failures.h"
#include "failure/launch_syntax.h"
#include "failure/target_scan.h"
#include "guest/errno_keeper.h"
#include "guest/options.h"
#include "guest/reentry_guard.h"
#include "guest/scratch_stack.h"
#include "process/loaded_objects.h"
#include "report/report_file.h"
#include "track/compiler_errors.h"
#include "track/object_records.h"

namespace kshim::shim {

std::atomic<std::uint32_t> g_pending{0};

namespace {

constinit thread_local DriverFailure t_pending;  // facts.code 0: nothing waits

// Programs and runtimes release what they had while the driver is going away already.
constexpr abi::Result kDeinitialized = 4;
constexpr abi::Result kNotInitialized = 3;
constexpr abi::Result kNoDevice = 100;
constexpr abi::Result kNotFound = 500;
constexpr abi::Result kInsufficientDriver = 35;

bool take_pending(DriverFailure& out) noexcept {
  if (t_pending.facts.code == 0) return false;
  out = t_pending;
  t_pending.facts.code = 0;
  g_pending.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

void note_driver_failure(const DriverFailure& failure) noexcept {
  if (failure.facts.code == kDeinitialized) return;
  if (!is_shared_runtime(find_loaded_object(failure.facts.caller).path) || !inside_runtime_call()) {
    record_failure(&failure, nullptr);
    return;
  }
  if (t_pending.facts.code == failure.facts.code) return;  // the same error, asked for again
  DriverFailure before;
  if (take_pending(before)) record_failure(&before, nullptr);
  t_pending = failure;
  g_pending.fetch_add(1, std::memory_order_relaxed);
}

void note_return(const CallFacts& returned) noexcept {
  DriverFailure driver;
  const bool waited = take_pending(driver);
  CallFacts facts = returned;
  const bool failed = facts.code != 0 && facts.code != kDeinitialized && complete_launch(facts);
  if (waited && failed && driver.facts.code == facts.code) {
    record_failure(&driver, &facts);
    return;
  }
  if (waited) record_failure(&driver, nullptr);
  if (failed) record_failure(nullptr, &facts);
}

void note_refusal(const CompilerCall& call) noexcept {
  Refusal refusal;
  if (examine_refusal(call, refusal)) record_refusal(refusal);
}

void note_driver(const CallFacts& facts) noexcept {
  learn_driver(facts.code == 0);
  announce_driver();
  announce_libraries();
  survey_targets();
  if (facts.code != 0) note_driver_failure({facts, 0, {}});
}

}  // namespace

void note_failure(const CallFacts& facts) noexcept {
  if (!options().enabled || in_driver(facts.caller)) return;
  const ErrnoKeeper keeper;
  const Busy busy;
  if (busy && !with_room([&] { note_driver_failure({facts, 0, current_device()}); })) count_dropped();
}

void note_failed_load(const CallFacts& facts, std::uint64_t module,
                      std::optional<std::uint64_t> device) noexcept {
  note_driver_failure({facts, module, device});
}

void note_runtime_return(const CallFacts& returned) noexcept {
  if (!options().enabled) return;
  const ErrnoKeeper keeper;
  const Busy busy;
  if (busy && !with_room([&] { note_return(returned); })) count_dropped();
}

void note_compiler_failure(const CompilerCall& call) noexcept {
  // A report begins with the driver: a program that only compiles leaves none.
  if (!options().enabled || current_report() == 0) return;
  const ErrnoKeeper keeper;
  const Busy busy;
  if (busy && !with_room([&] { note_refusal(call); })) count_dropped();
}

void init_begins() noexcept {
  if (!options().enabled) return;
  const ErrnoKeeper keeper;
  const Busy busy;
  const auto begin = [] {
    if (begin_report() != 0) count_failures_at_end();
  };
  if (busy && !with_room(begin)) count_dropped();
}

void note_init(const CallFacts& facts) noexcept {
  if (!options().enabled || in_driver(facts.caller)) return;
  const ErrnoKeeper keeper;
  const Busy busy;
  if (busy && !with_room([&] { note_driver(facts); })) count_dropped();
}

void* resolve_export(Hook hook) noexcept {
  const ErrnoKeeper keeper;
  find_driver();
  return driver_export(hook);
}

void* resolve_routed(Hook hook) noexcept {
  const ErrnoKeeper keeper;
  find_driver();
  return driver_routed(hook);
}

void* resolve_runtime(Runtime runtime, Hook hook) noexcept {
  const ErrnoKeeper keeper;
  return find_runtime(runtime, hook);
}

abi::Result absent(Hook hook) noexcept {
  if (row_of(hook).layer == Layer::runtime) return kInsufficientDriver;
  if (hook == Hook::cuInit) return kNoDevice;
  const Stage stage = row_of(hook).stage;
  return stage == Stage::route || stage == Stage::table ? kNotFound : kNotInitialized;
}

}  // namespace kshim::shim
