// SPDX-License-Identifier: Apache-2.0
#include "core/observer.h"

#include <span>

#include "core/state.h"
#include "cuda/cuda_libraries.h"
#include "cuda/driver_info.h"
#include "cuda/driver_log.h"
#include "cuda/driver_table.h"
#include "cuda/real_functions.h"
#include "failure/cudart_frame.h"
#include "failure/launch_syntax.h"
#include "guest/clock.h"
#include "guest/options.h"
#include "guest/scratch_stack.h"
#include "guest/signals.h"
#include "guest/syscalls.h"
#include "guest/text_buffer.h"
#include "kshim/base/cuda_error.h"
#include "kshim/report/kept_image.h"
#include "process/loaded_objects.h"
#include "report/stderr_log.h"
#include "track/bypass.h"
#include "track/coverage.h"
#include "track/fatbin_registry.h"

namespace kshim::shim {

std::atomic<std::uint32_t> g_pending{0};

namespace {

/// A driver error raised inside a hooked runtime call is held until that call returns, so that one error seen
/// at two layers gives one record. facts.code 0: none is held.
constinit thread_local DriverFailure t_pending;

// At exit, programs and runtimes release resources after the driver has shut down.
constexpr abi::Result kDeinitialized = 4;
constexpr abi::Result kNotInitialized = 3;
constexpr abi::Result kNoDevice = 100;
constexpr abi::Result kNotFound = 500;
constexpr abi::Result kInsufficientDriver = 35;

using Device = std::optional<std::uint64_t>;

bool extract_pending(DriverFailure& out) noexcept {
  if (t_pending.facts.code == 0) return false;
  out = t_pending;
  t_pending.facts.code = 0;
  g_pending.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

void add_failure(State& state, const DriverFailure* driver, const CallArgs* runtime, Device device,
                 DriverLines& lines) noexcept {
  const std::string_view log =
      driver != nullptr ? lines.of(row_of(driver->facts.hook).name) : lines.returning(runtime->code);
  state.report.begin_at_failure();  // without a report, stderr still has the failure
  state.driver.announce(state.report);
  state.failures.add(state.failure_scene(), driver, runtime, device, log);
}

/// `frame`: an address in the frame of the call's wrapper.
void add_driver_failure(State& state, const DriverFailure& failure, std::uintptr_t frame,
                        DriverLines& lines) noexcept {
  if (failure.facts.code == kDeinitialized) return;
  if (!is_shared_runtime(find_object_in_use(failure.facts.caller).path) ||
      !called_from_cudart(failure.facts.caller, frame)) {
    add_failure(state, &failure, nullptr, failure.device, lines);
    return;
  }
  if (t_pending.facts.code == failure.facts.code) return;  // the same error, asked for again
  DriverFailure before;
  if (extract_pending(before)) add_failure(state, &before, nullptr, before.device, lines);
  t_pending = failure;
  t_pending.facts.jit_count = 0;  // what the runtime gave the driver is gone when it returns
  g_pending.fetch_add(1, std::memory_order_relaxed);
}

void add_runtime_return(State& state, const CallArgs& returned, Device device, DriverLines& lines) noexcept {
  DriverFailure driver;
  const bool waited = extract_pending(driver);
  CallArgs facts = returned;
  const bool failed = facts.code != 0 && facts.code != kDeinitialized && complete_launch(facts);
  if (waited && failed && driver.facts.code == facts.code) {
    add_failure(state, &driver, &facts, device, lines);
    return;
  }
  if (waited) add_failure(state, &driver, nullptr, driver.device, lines);
  if (failed) add_failure(state, nullptr, &facts, device, lines);
}

/// Asks the driver what is not known of it yet. The answers do not fit on a small stack.
void learn_driver(bool initialized) noexcept {
  bool known = true;
  SlowPath().run([&](State& state) { known = state.driver.knows(initialized); });
  void* const memory = known ? nullptr : raw::map_memory(sizeof(DriverAnswers));
  if (memory == nullptr) return;
  auto* const facts = static_cast<DriverAnswers*>(memory);
  ask_driver(initialized, *facts);
  SlowPath().run([&](State& state) { state.driver.learn(*facts); });
  raw::unmap_memory(memory, sizeof(DriverAnswers));
}

/// At its exit a runtime unloads what it has loaded. In a child of fork, which does not use CUDA otherwise,
/// the driver refuses, and the child may have forbidden itself the system calls of a record.
bool is_release_at_exit(const CallArgs& facts) noexcept {
  return row_of(facts.hook).stage == Stage::unload &&
         (facts.code == kDeinitialized || facts.code == kNotInitialized);
}

bool is_recording(const void* caller) noexcept { return options().enabled && !in_driver(caller); }

}  // namespace

bool on_init_begins() noexcept {
  if (!options().enabled || current_driver() == 0) return false;
  SlowPath().run([](State& state) { state.report.begin(); });
  return true;
}

void on_init(const CallArgs& facts, bool begun) noexcept {
  if (!is_recording(facts.caller)) return;
  // A library's own cuInit, which opens the driver: there is none, or its call has been recorded.
  if (!begun && facts.code != 0 && (current_driver() == 0 || current_report() != 0)) return;
  learn_driver(facts.code == 0);
  if (facts.code == 0) listen_to_driver();
  DriverLines lines;
  SlowPath().run([&](State& state) {
    state.report.begin();
    state.driver.announce(state.report);
    state.objects.announce_libraries(state.report);
    write_unwatched_runtime(state.locked, state.report);
    if (facts.code != 0) add_driver_failure(state, {facts, 0, {}}, address_of(&facts), lines);
  });
}

void on_call_failed(const CallArgs& facts) noexcept {
  if (!is_recording(facts.caller) || is_release_at_exit(facts)) return;
  const Device asked = ask_current_device();
  DriverLines lines;
  SlowPath().run([&](State& state) {
    add_driver_failure(state, {facts, 0, state.driver.device_or_only(asked)}, address_of(&facts), lines);
  });
}

void on_runtime_returned(const CallArgs& returned) noexcept {
  // g_pending counts the errors of all threads, so most calls have nothing to do here.
  if (!options().enabled || (returned.code == 0 && t_pending.facts.code == 0)) return;
  // The runtime has asked the driver for its version and for nothing else.
  if (returned.code == kInsufficientDriver && current_driver() != 0) learn_driver(false);
  const Device asked = ask_current_device();
  DriverLines lines;
  SlowPath().run(
      [&](State& state) { add_runtime_return(state, returned, state.driver.device_or_only(asked), lines); });
}

std::uint64_t load_begins() noexcept { return options().enabled ? now_nanoseconds() : 0; }

namespace {

/// A load that has returned.
struct Load {
  const CallArgs& facts;
  Period period;
  Device device;
  std::uintptr_t handle;
  Module module;

  /// `kernels`: of an image that lies in no file; nullptr where nothing needs them.
  void add(State& state, const KernelNames* kernels, DriverLines& lines) noexcept {
    state.driver.announce(state.report);
    state.modules.add(facts, period, device, state.report, state.driver, state.objects, module);
    if (state.handles.remember_load(handle, module.number)) forget_launches(state.locked, handle);
    if (!module.fits || !options().targets.empty())
      state.gaps.note_load(state.gap_scene(), module.code, device, facts.caller, kernels);
    if (facts.code != 0) add_driver_failure(state, {facts, module.number, device}, address_of(&facts), lines);
  }
  /// Whether the image, which lies in no file, has to be read as a whole for the records.
  bool wants_image(State& state) noexcept {
    return module.code.is_loose() && module.code.size != 0 &&
           (facts.code != 0 || !options().targets.empty()) &&
           (state.modules.is_new_failure(facts, module.code, device, state.report) ||
            state.gaps.is_new(state.gap_scene(), module.code, device, facts.caller));
  }
};

/// Keeps the image of a load that the driver has refused beside the report.
void keep_image(const SlowPath& path, Module& module) noexcept {
  const Bytes image = loose_bytes(module.code);
  PathText report;
  bool room = false;
  if (image.empty() || image.size() != module.code.size) return;
  path.look([&](State& state) { room = state.report.take_room_for_image(image.size(), report); });
  if (!room) return;
  const ::kshim::report::KeptName name(module.code.hash, module.code.kind);
  module.kept = write_beside(report.view(), name.c_str(), image);
  if (!module.kept) path.look([&](State& state) { state.report.give_room_back(image.size()); });
}

}  // namespace

void on_load(const CallArgs& facts, std::uint64_t begin, std::uintptr_t handle) noexcept {
  if (!is_recording(facts.caller)) return;
  Load load{facts, {begin, now_nanoseconds()}, {}, handle, {}};
  DeviceCode& code = load.module.code;
  const Device asked = ask_current_device();
  DriverLines lines;
  const SlowPath path;
  if (path) examine(facts, code);
  bool wants_image = false;
  path.run([&](State& state) {
    state.report.begin();
    load.device = state.driver.device_or_only(asked);
    wants_image = load.wants_image(state);
    if (!wants_image) load.add(state, nullptr, lines);
  });
  if (wants_image) [[unlikely]]
    on_new_stack([&] {
      if (facts.code != 0) hash_in_full(code);
      if (options().images && !options().is_private && code_has(facts.code, code_trait::about_code) &&
          !::kshim::report::kept_extension(code.kind).empty())
        keep_image(path, load.module);
      KernelNames kernels;
      loose_kernels(code, kernels);
      path.run([&](State& state) { load.add(state, &kernels, lines); });
    });
}

void on_lookup(const CallArgs& facts, std::uintptr_t handle) noexcept {
  if (!options().enabled || handle == 0) return;
  const std::string_view name = facts.symbol == nullptr ? std::string_view() : facts.symbol;
  SlowPath().look([&](State& state) {
    bool changed = false;
    if (facts.host != 0) {
      // A runtime's handle may equal a driver's handle that is known already.
      const Registered kernel = find_registered(facts.host);
      if (kernel.kernel.empty() || state.handles.recall(handle).name == kernel.kernel) return;
      changed = state.handles.remember_name(handle, kernel.kernel, 0);
    } else {
      const std::uintptr_t source = facts.container != 0 ? facts.container : facts.handle;
      changed = facts.symbol == nullptr ? state.handles.remember_alias(handle, source)
                                        : state.handles.remember_name(handle, name, source);
    }
    if (changed) forget_launches(state.locked, handle);
  });
}

// A child of fork that does not use CUDA unloads at its end what its parent has loaded, and the driver
// refuses. It may have forbidden itself system calls.
void unload_begins(std::uintptr_t handle) noexcept {
  if (handle == 0 || !options().enabled || !is_state_mapped() || has_parents_report()) return;
  if (!stage_unload(handle))
    SlowPath().look([handle](State& state) {
      state.handles.update();
      stage_unload(handle);
    });
}

void on_error_read(Hook hook, abi::Result code, const void* caller) noexcept {
  LastError error;
  if (!match_last_error(hook, code, error)) return;
  SlowPath().run(
      [&](State& state) { state.error_reads.add(error, hook, caller, state.report, state.objects); });
}

void on_fatbin_registered(abi::FatbinHandle handle, std::uintptr_t wrapper) noexcept {
  if (options().enabled && handle != nullptr && wrapper != 0)
    add_registration(fatbin_registration(handle, wrapper));
}

void on_kernel_registered(abi::FatbinHandle handle, std::uintptr_t host, const char* name) noexcept {
  if (options().enabled && handle != nullptr && host != 0 && name != nullptr)
    add_registration({handle, host, 0, name});
}

void on_fatbin_unregistered(abi::FatbinHandle handle) noexcept {
  if (options().enabled && handle != nullptr) add_registration({handle, 0, 0, nullptr});
}

void on_fatbin_complete() noexcept {
  if (!options().enabled || options().targets.empty()) return;
  SlowPath().run([](State& state) { state.objects.announce_libraries(state.report); });
}

void on_export_table(const void* const* table, const abi::Uuid* id, const void* caller,
                     const AnyFunction* wrappers) noexcept {
  if (!is_recording(caller) || table == nullptr || id == nullptr || !is_load_table(*id)) return;
  SlowPath().run([&](State& state) {
    watch_load_table(state.locked, address_of(*table), caller, wrappers);
    write_unwatched_runtime(state.locked, state.report);
  });
}

void on_compiler_failed(const CompilerCall& call) noexcept {
  // A report begins with the driver: a program that only compiles leaves none.
  if (!options().enabled) return;
  bool begun = current_report() != 0;
  if (!begun) SlowPath().run([&begun](State& state) { begun = state.report.waits_for_failure(); });
  if (!begun) return;
  Refusal refusal;
  if (!examine_refusal(call, refusal)) return;
  const Device asked = ask_current_device();
  SlowPath().run([&](State& state) {
    if (state.report.begin_at_failure() == 0) return;
    state.driver.announce(state.report);
    state.failures.add(state.failure_scene(), refusal, state.driver.device_or_only(asked));
  });
}

void on_launch(std::uintptr_t handle) noexcept {
  if (count_launch(handle)) return;
  SlowPath().run([handle](State& state) {
    register_kernel(state.locked, handle, state.report, state.modules, state.handles, state.objects);
  });
}

namespace {

/// A preload defines every name that it exports, so the dynamic linker does not refuse the program.
void say_absent(std::string_view name, std::string_view library) noexcept {
  static std::atomic<bool> g_said{false};
  if (!options().enabled || g_said.exchange(true, std::memory_order_relaxed)) return;
  const ScopedBlockSignals held;
  on_new_stack([&] {
    Text<1024> line;
    line << "the program calls " << name << ", which " << library
         << " does not have; without kshim, the dynamic linker ends it with a symbol lookup error";
    log_line(LogLevel::warn, line.view());
  });
}

/// Searches once more where nothing was found while other threads closed libraries, which changes the list
/// that is read.
template <class Find>
AnyFunction search_again(const Find& find) noexcept {
  constexpr int kMaxTries = 50;
  constexpr long kPause = 100'000;  // nanoseconds
  for (int tries = 1;; ++tries) {
    const std::uint64_t closes = count_closes();
    const AnyFunction found = find();
    if (found != nullptr || nothing_closed_since(closes) || tries == kMaxTries) return found;
    raw::sleep_for(kPause);
  }
}

}  // namespace

Resolved resolve_export(Hook hook, const void* caller) noexcept {
  Resolved out;
  out.function = search_again([&] {
    AnyFunction found = find_driver(hook, true);
    out.is_plugins = found == nullptr;
    return out.is_plugins ? find_own(hook, caller) : found;
  });
  return out;
}

Resolved resolve_routed(Hook hook, const void* /*caller*/) noexcept {
  return {search_again([&] { return find_driver(hook, false); }), false};
}

AnyFunction resolve_runtime(Runtime runtime, Hook hook) noexcept {
  return search_again([&] { return find_runtime(runtime, hook); });
}

abi::Result absent(Runtime runtime, Hook hook) noexcept {
  const LoadedObject library = runtime_object(runtime);
  if (!library) return kInsufficientDriver;
  say_absent(row_of(hook).name, library.path);
  return kNotFound;
}

abi::Result absent(Hook hook) noexcept {
  if (const LoadedObject library = driver_object(); library) say_absent(row_of(hook).name, library.path);
  if (hook == Hook::cuInit) return kNoDevice;
  const Stage stage = row_of(hook).stage;
  return stage == Stage::route || stage == Stage::table ? kNotFound : kNotInitialized;
}

}  // namespace kshim::shim
