// SPDX-License-Identifier: Apache-2.0
#include "track/modules.h"

#include <atomic>
#include <cstring>
#include <span>

#include "cuda/call_args.h"
#include "cuda/driver_info.h"
#include "cuda/next_symbol.h"
#include "failure/failures.h"
#include "failure/gaps.h"
#include "guest/clock.h"
#include "guest/errno_keeper.h"
#include "guest/options.h"
#include "guest/reentry_guard.h"
#include "guest/scratch_stack.h"
#include "guest/text_buffer.h"
#include "guest/timed_lock.h"
#include "kshim/base/hash.h"
#include "report/report_file.h"
#include "track/fatbin_registry.h"
#include "track/handle_names.h"
#include "track/object_records.h"

namespace kshim::shim {
namespace {

using report::Field;
using report::RecordType;

PatientLock g_lock;
// By number, modulo; under g_lock. As bytes: a Module's defaults are not all zero and would fill the file.
alignas(Module) std::byte g_modules[kKeptModules * sizeof(Module)];
std::atomic<std::uint64_t> g_count{0};
std::atomic<std::uint64_t> g_counted{0};  // number of the report << 40 | loads seen

/// A program that loads in a loop must not fill the disk: so many loads that succeed have a record, and so
/// many failing ones that differ.
constexpr std::size_t kMaxRecords = 4096;
constexpr std::size_t kMaxFailed = 1024;
struct FailedLoad {
  std::uint64_t key;
  std::uint64_t record;
};
// Under g_lock.
std::uint32_t g_recorded_report = 0;  ///< the report that the rest belongs to
std::size_t g_succeeded = 0;
std::size_t g_failed_count = 0;
constinit FailedLoad g_failed[kMaxFailed] = {};

std::uint64_t key_of(const CallFacts& facts, const DeviceCode& code,
                     std::optional<std::uint64_t> device) noexcept {
  const std::uint64_t parts[] = {static_cast<std::uint64_t>(facts.code), device.value_or(~0ULL), code.object,
                                 code.object != 0 ? code.offset
                                 : code.hash != 0 ? code.hash
                                                  : code.address,
                                 index_of(facts.hook)};
  return key_hash(std::as_bytes(std::span(parts)));
}

/// Under g_lock. The id of the record that tells of this load: module.number where it is to be written, that
/// of an equal load that failed before, or 0.
std::uint64_t choose_record(const CallFacts& facts, const Module& module,
                            std::optional<std::uint64_t> device) noexcept {
  if (g_recorded_report != module.report) g_recorded_report = module.report, g_succeeded = g_failed_count = 0;
  if (facts.code == 0) return g_succeeded < kMaxRecords ? (++g_succeeded, module.number) : 0;
  const std::uint64_t key = key_of(facts, module.code, device);
  for (std::size_t i = 0; i < g_failed_count; ++i)
    if (g_failed[i].key == key) return g_failed[i].record;
  return g_failed_count < kMaxFailed ? module.number : 0;
}

void keep(const Module& module) noexcept {
  std::memcpy(g_modules + module.number % kKeptModules * sizeof(Module), &module, sizeof(Module));
}
void fetch(std::uint64_t number, Module& out) noexcept {
  std::memcpy(&out, g_modules + number % kKeptModules * sizeof(Module), sizeof(Module));
}

void count(std::uint32_t report) noexcept {
  const std::uint64_t first = std::uint64_t{report} << 40U;
  std::uint64_t now = g_counted.load(std::memory_order_relaxed);
  while (!g_counted.compare_exchange_weak(now, (now >> 40U) == report ? now + 1 : first + 1,
                                          std::memory_order_relaxed)) {
  }
}

/// How the file reaches the runtime, as far as this load shows it.
std::string_view runtime_of(const CallFacts& facts, const DeviceCode& code) noexcept {
  if (facts.file != nullptr) return "none";
  if (!code.wrapped || code.object == 0) return {};
  return find_loaded_object(facts.caller).identity == code.object ? "static" : std::string_view();
}

void write_module(const CallFacts& facts, const Module& module, std::uint64_t nanoseconds,
                  std::optional<std::uint64_t> device) noexcept {
  const DeviceCode& code = module.code;
  const DeviceFacts* gpu = device_facts(device);
  image::ShortName selected;
  std::optional<bool> jit;
  if (gpu != nullptr && code.image_count != 0) {
    const image::Selection selection = selection_for(code, gpu->cc);
    if (selection.choice != image::Choice::none) {
      const image::Candidate& image = code.images[selection.index];
      selected = to_name(image.kind, image.arch);
      jit = selection.choice == image::Choice::jit;
    }
  }
  Text<16> hash;
  for (unsigned i = 0; i < 16 && code.hash != 0; ++i)
    hash.put("0123456789abcdef"[code.hash >> (60U - 4U * i) & 15U]);
  const image::ShortName toolkit = to_name(code.toolkit);
  using Maybe = std::optional<std::uint64_t>;
  write_record<RecordType::module>([&](auto& record) {
    record.template add<Field::module_id>(module.number);
    record.template add<Field::module_object>(code.object == 0 ? Maybe() : Maybe(code.object));
    record.template add<Field::module_offset>(code.object == 0 ? Maybe() : Maybe(code.offset));
    record.template add<Field::module_content_hash>(hash.empty() ? std::string_view() : hash.view());
    record.template add<Field::module_size>(code.size == 0 ? Maybe() : Maybe(code.size));
    record.template add<Field::module_api>(row_of(facts.hook).name);
    record.template add<Field::module_result>(static_cast<std::uint64_t>(facts.code));
    record.template add<Field::module_selected>(selected.size == 0 ? std::string_view() : selected.view());
    record.template add<Field::module_jit>(jit);
    record.template add<Field::module_ms>(report::Milliseconds{nanoseconds});
    record.template add<Field::module_device>(device);
    record.template add<Field::module_toolkit>(code.toolkit.known() ? toolkit.view() : std::string_view());
  });
}

void note(const CallFacts& facts, std::uint64_t nanoseconds, std::uintptr_t handle) noexcept {
  const std::uint32_t number = begin_report();
  if (number == 0) return;
  const std::optional<std::uint64_t> device = current_device();
  Module module;
  if (facts.file != nullptr)
    examine_file(facts.file, module.code);
  else if (facts.image != 0)
    examine_memory(facts.image, facts.code != 0, module.code);
  announce_driver();
  announce_object(module.code.object, runtime_of(facts, module.code));
  module.number = g_count.fetch_add(1, std::memory_order_relaxed) + 1;
  module.report = number;
  {
    const LockGuard guard(g_lock);
    module.record = guard ? choose_record(facts, module, device) : module.number;
  }
  // Found by others only once it is written: a failure must not come before the record that it refers to.
  if (module.record == module.number) write_module(facts, module, nanoseconds, device);
  {
    const LockGuard guard(g_lock);
    if (guard) keep(module);
    if (guard && facts.code != 0 && module.record == module.number && g_failed_count < kMaxFailed)
      g_failed[g_failed_count++] = {key_of(facts, module.code, device), module.number};
  }
  count(number);
  count_failures_at_end();
  remember_handle(handle, {}, module.number);
  note_gaps_of_load(module.code, device, facts.caller);
  if (facts.code != 0) note_failed_load(facts, module.number, device);
}

}  // namespace

std::uint64_t load_begins() noexcept { return options().enabled ? now_nanoseconds() : 0; }

void note_load(const CallFacts& facts, std::uint64_t begin, std::uintptr_t handle) noexcept {
  if (!options().enabled || in_driver(facts.caller)) return;
  const std::uint64_t end = now_nanoseconds();
  const ErrnoKeeper keeper;
  const Busy busy;
  if (busy && !with_room([&] { note(facts, end - begin, handle); })) count_dropped();
}

void note_lookup(const CallFacts& facts, std::uintptr_t handle) noexcept {
  if (!options().enabled || handle == 0) return;
  const ErrnoKeeper keeper;
  if (facts.host != 0) {
    // A runtime's handle, which may be the driver's that is known already.
    const Registered kernel = registered_kernel(facts.host);
    if (!kernel.kernel.empty() && recall_handle(handle).name != kernel.kernel)
      remember_handle(handle, kernel.kernel, 0);
    return;
  }
  const HandleFacts source = recall_handle(facts.container != 0 ? facts.container : facts.handle);
  remember_handle(handle, facts.symbol != nullptr ? std::string_view(facts.symbol) : source.name,
                  source.module);
}

bool find_module(std::uint64_t number, Module& out) noexcept {
  if (number == 0) return false;
  const LockGuard guard(g_lock);
  Module kept;
  if (guard) fetch(number, kept);
  if (kept.number != number) return false;
  out = kept;
  return true;
}

bool find_module_of(std::uintptr_t code, Module& out) noexcept {
  const LockGuard guard(g_lock);
  if (!guard || code == 0) return false;
  const std::uint64_t count = g_count.load(std::memory_order_relaxed);
  for (std::uint64_t number = count; number > 0 && count - number < kKeptModules; --number) {
    Module kept;
    fetch(number, kept);
    if (kept.number != number || kept.code.address != code) continue;
    out = kept;
    return true;
  }
  return false;
}

std::uint64_t modules_in_report(std::uint32_t report) noexcept {
  const std::uint64_t counted = g_counted.load(std::memory_order_relaxed);
  return (counted >> 40U) == report ? counted & ((1ULL << 40U) - 1) : 0;
}

}  // namespace kshim::shim
