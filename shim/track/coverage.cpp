// SPDX-License-Identifier: Apache-2.0
#include "track/coverage.h"

#include <span>

#include "guest/errno_keeper.h"
#include "guest/options.h"
#include "guest/reentry_guard.h"
#include "guest/timed_lock.h"
#include "kshim/base/hash.h"
#include "report/report_file.h"
#include "track/handle_names.h"
#include "track/modules.h"
#include "track/object_records.h"

namespace kshim::shim {
namespace {

using report::Field;
using report::RecordType;
using Maybe = std::optional<std::uint64_t>;

/// A handle that was launched.
struct Slot {
  std::atomic<std::uintptr_t> handle{0};
  std::atomic<std::uint64_t> launches{0};
  std::atomic<std::uint32_t> kernel{0};  ///< number in g_kernels; 0 = not known yet
  std::atomic<std::uint32_t> report{0};  ///< the report that has the kernel's record
};
/// A kernel: several handles (contexts, CUkernel and CUfunction) may stand for it.
struct Kernel {
  std::uint64_t key = 0;  ///< 0 = free
  std::string_view name;
  std::uint32_t object = 0;
  std::uint64_t module = 0;  ///< id of its record; 0 = none
  std::atomic<std::uint64_t> launches{0};
};

// Pages that are not used cost nothing. A full neighbourhood loses launches, which is said at the end.
constexpr std::size_t kSlots = 1U << 16U;
constexpr std::size_t kKernels = 1U << 15U;
constexpr std::size_t kProbes = 32;
Slot g_slots[kSlots];
Kernel g_kernels[kKernels];
std::atomic<bool> g_full{false};  ///< or a launch that could not be named

PatientLock g_lock;          // guards what follows, and the kernels' identities
std::uint32_t g_report = 0;  ///< the report that the kernels belong to

constexpr std::size_t home_of(std::uint64_t value, std::size_t size) noexcept {
  return static_cast<std::size_t>((value * 0x9e3779b97f4a7c15ULL) >> 32U) % size;
}

Slot* find_slot(std::uintptr_t handle, bool claim) noexcept {
  const std::size_t home = home_of(handle, kSlots);
  for (std::size_t i = 0; i < kProbes; ++i) {
    Slot& slot = g_slots[(home + i) % kSlots];
    std::uintptr_t holder = slot.handle.load(std::memory_order_acquire);
    if (holder == 0 && (!claim || slot.handle.compare_exchange_strong(holder, handle)))
      return claim ? &slot : nullptr;
    if (holder == handle) return &slot;
  }
  return nullptr;
}

/// Under g_lock. The parent's kernels are not those of a fork's child.
void begin_counting(std::uint32_t report) noexcept {
  if (g_report == report) return;
  g_report = report;
  for (Kernel& kernel : g_kernels)
    if (kernel.key != 0) kernel.key = 0, kernel.launches.store(0, std::memory_order_relaxed);
}

/// Under g_lock. 0 where there is no room.
std::uint32_t find_or_add(std::string_view name, const Module& module, bool& added) noexcept {
  const DeviceCode& code = module.code;
  const std::uint64_t parts[] = {code.object, code.object != 0 ? code.offset : code.hash};
  std::uint64_t key = key_hash(bytes_of(name), key_hash(std::as_bytes(std::span(parts))));
  if (key == 0) key = 1;
  const std::size_t home = home_of(key, kKernels);
  for (std::size_t i = 0; i < kProbes; ++i) {
    const std::size_t at = (home + i) % kKernels;
    Kernel& kernel = g_kernels[at];
    added = kernel.key == 0;
    if (added) {
      kernel.key = key;
      kernel.name = name;
      kernel.object = code.object;
      kernel.module = module.report == g_report ? module.record : 0;
    }
    if (kernel.key == key) return static_cast<std::uint32_t>(at + 1);
  }
  return 0;
}

void write(const Kernel& kernel, std::uint64_t launches) noexcept {
  write_record<RecordType::coverage>([&](auto& record) {
    record.template add<Field::coverage_kernel>(kernel.name);
    record.template add<Field::coverage_object>(kernel.object == 0 ? Maybe() : Maybe(kernel.object));
    record.template add<Field::coverage_module>(kernel.module == 0 ? Maybe() : Maybe(kernel.module));
    record.template add<Field::coverage_launches>(launches);
  });
}

/// The first launch of this handle in this report.
[[gnu::noinline, gnu::cold]] void introduce(Slot& slot, std::uintptr_t handle) noexcept {
  const ErrnoKeeper keeper;
  const Busy busy;
  if (!busy) return;
  const std::uint32_t report = begin_report();
  const HandleFacts facts = recall_handle(handle);
  if (report == 0) return;
  if (facts.name.empty()) {
    count_unknown_launch();
    return;
  }
  Module module;
  find_module(facts.module, module);
  announce_object(module.code.object, {});
  const LockGuard guard(g_lock);
  if (!guard) return;
  begin_counting(report);
  bool added = false;
  const std::uint32_t number = find_or_add(facts.name, module, added);
  if (number == 0) {
    g_full.store(true, std::memory_order_relaxed);
    return;
  }
  if (added) write(g_kernels[number - 1], 1);
  // What a fork's parent had counted is the parent's.
  if (slot.report.load(std::memory_order_relaxed) != report)
    slot.launches.store(0, std::memory_order_relaxed);
  slot.launches.fetch_add(1, std::memory_order_relaxed);
  slot.report.store(report, std::memory_order_relaxed);
  slot.kernel.store(number, std::memory_order_release);
}

/// What was counted for the handle goes to its kernel.
void fold(Slot& slot) noexcept {
  const std::uint32_t number = slot.kernel.load(std::memory_order_acquire);
  if (number == 0 || slot.report.load(std::memory_order_relaxed) != g_report) return;
  g_kernels[number - 1].launches.fetch_add(slot.launches.exchange(0, std::memory_order_relaxed),
                                           std::memory_order_relaxed);
}

}  // namespace

void count_launch(std::uintptr_t handle) noexcept {
  if (handle == 0) return;
  Slot* const slot = find_slot(handle, true);
  if (slot == nullptr) {
    g_full.store(true, std::memory_order_relaxed);
  } else if (slot->kernel.load(std::memory_order_acquire) != 0 &&
             slot->report.load(std::memory_order_relaxed) == current_report()) {
    slot->launches.fetch_add(1, std::memory_order_relaxed);
  } else {
    introduce(*slot, handle);
  }
}

void count_unknown_launch() noexcept { g_full.store(true, std::memory_order_relaxed); }

void forget_launches(std::uintptr_t handle) noexcept {
  if (!options().coverage) return;
  Slot* const slot = find_slot(handle, false);
  if (slot == nullptr) return;
  const LockGuard guard(g_lock);
  if (!guard) return;
  fold(*slot);
  slot->kernel.store(0, std::memory_order_release);
}

void write_launch_counts() noexcept {
  if (!options().coverage) return;
  const LockGuard guard(g_lock);
  if (!guard) return;
  if (g_full.load(std::memory_order_relaxed)) count_dropped();
  if (g_report == 0 || g_report != current_report()) return;
  for (Slot& slot : g_slots)
    if (slot.handle.load(std::memory_order_relaxed) != 0) fold(slot);
  for (const Kernel& kernel : g_kernels) {
    const std::uint64_t launches = kernel.launches.load(std::memory_order_relaxed);
    if (kernel.key != 0 && launches > 1) write(kernel, launches);
  }
}

}  // namespace kshim::shim
