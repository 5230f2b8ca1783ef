// SPDX-License-Identifier: Apache-2.0
#include "track/coverage.h"

#include <atomic>
#include <optional>
#include <span>

#include "guest/options.h"
#include "guest/syscalls.h"
#include "guest/text_buffer.h"
#include "kshim/base/hash.h"

namespace kshim::shim {
namespace {

using report::Field;
using report::RecordType;
using Maybe = std::optional<std::uint64_t>;

/// A handle that was launched.
struct Slot {
  std::atomic<std::uintptr_t> handle{0};
  std::atomic<std::uint64_t> launches{0};
  std::atomic<std::uint32_t> kernel{0};  ///< number in kernels; 0 = not known yet
  std::atomic<std::uint32_t> report{0};  ///< the report that has the kernel's record
};
/// A kernel. Several handles (of contexts, CUkernel and CUfunction) may refer to it.
struct Kernel {
  std::uint64_t key = 0;  ///< 0 = free
  std::string_view name;
  std::uint32_t object = 0;
  std::uint64_t module = 0;  ///< id of its record; 0 = none
  std::uint64_t launches = 0;
};

// A full neighborhood loses launches; the end of the report says so.
constexpr std::size_t kSlots = 1U << 16U;
constexpr std::size_t kKernels = 1U << 15U;
constexpr std::size_t kProbes = 32;

/// Mapped when the first launch is counted.
struct Counts {
  Slot slots[kSlots];
  Kernel kernels[kKernels];  ///< changed by those that have a Locked
  std::uint32_t report;      ///< the report that the kernels belong to
};
std::atomic<Counts*> g_counts{nullptr};
std::atomic<bool> g_incomplete{false};  ///< there was no room, or a launch had no known kernel

Counts* open_counts() noexcept {
  Counts* counts = g_counts.load(std::memory_order_acquire);
  if (counts != nullptr) return counts;
  void* fresh = raw::map_memory(sizeof(Counts), MAP_NORESERVE);
  if (fresh == nullptr) return nullptr;
  if (g_counts.compare_exchange_strong(counts, static_cast<Counts*>(fresh), std::memory_order_acq_rel))
    return static_cast<Counts*>(fresh);
  raw::unmap_memory(fresh, sizeof(Counts));
  return counts;
}

constexpr std::size_t home_of(std::uint64_t value, std::size_t size) noexcept {
  return static_cast<std::size_t>((value * 0x9e3779b97f4a7c15ULL) >> 32U) % size;
}

Slot* find_slot(Counts& counts, std::uintptr_t handle, bool claim) noexcept {
  const std::size_t home = home_of(handle, kSlots);
  for (std::size_t i = 0; i < kProbes; ++i) {
    Slot& slot = counts.slots[(home + i) % kSlots];
    std::uintptr_t holder = slot.handle.load(std::memory_order_acquire);
    if (holder == 0 && (!claim || slot.handle.compare_exchange_strong(holder, handle)))
      return claim ? &slot : nullptr;
    if (holder == handle) return &slot;
  }
  return nullptr;
}

/// Forgets the kernels that a child of fork inherits.
void begin_counting(Counts& counts, std::uint32_t report) noexcept {
  if (counts.report == report) return;
  counts.report = report;
  for (Kernel& kernel : counts.kernels)
    if (kernel.key != 0) kernel.key = kernel.launches = 0;
}

/// 0 where there is no room.
std::uint32_t find_or_add(Counts& counts, std::string_view name, const Module& module, bool& added) noexcept {
  const std::uint64_t parts[] = {module.code.key()};
  std::uint64_t key = key_hash(bytes_of(name), key_hash(std::as_bytes(std::span(parts))));
  if (key == 0) key = 1;
  const std::size_t home = home_of(key, kKernels);
  for (std::size_t i = 0; i < kProbes; ++i) {
    const std::size_t at = (home + i) % kKernels;
    Kernel& kernel = counts.kernels[at];
    added = kernel.key == 0;
    if (added) {
      kernel.key = key;
      kernel.name = copy_to_storage(name);
      kernel.object = module.code.object;
      kernel.module = module.report == counts.report ? module.record : 0;
    }
    if (kernel.key == key) return static_cast<std::uint32_t>(at + 1);
  }
  return 0;
}

void write(Report& report, const Kernel& kernel, std::uint64_t launches) noexcept {
  report.write<RecordType::coverage>([&](auto& record) {
    record.template add<Field::coverage_kernel>(kernel.name);
    record.template add<Field::coverage_object>(kernel.object == 0 ? Maybe() : Maybe(kernel.object));
    record.template add<Field::coverage_module>(kernel.module == 0 ? Maybe() : Maybe(kernel.module));
    record.template add<Field::coverage_launches>(launches);
  });
}

/// What was counted for the handle goes to its kernel.
void flush_slot(Counts& counts, Slot& slot) noexcept {
  const std::uint32_t number = slot.kernel.load(std::memory_order_acquire);
  if (number == 0 || slot.report.load(std::memory_order_relaxed) != counts.report) return;
  counts.kernels[number - 1].launches += slot.launches.exchange(0, std::memory_order_relaxed);
}

}  // namespace

bool count_launch(std::uintptr_t handle) noexcept {
  if (handle == 0) return true;
  Counts* const counts = open_counts();
  Slot* const slot = counts == nullptr ? nullptr : find_slot(*counts, handle, true);
  if (slot == nullptr) {
    g_incomplete.store(true, std::memory_order_relaxed);
    return true;
  }
  if (slot->kernel.load(std::memory_order_acquire) == 0 ||
      slot->report.load(std::memory_order_relaxed) != current_report())
    return false;
  slot->launches.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void count_unknown_launch() noexcept { g_incomplete.store(true, std::memory_order_relaxed); }

void register_kernel(const Locked& /*locked*/, std::uintptr_t handle, Report& report, const Modules& modules,
                     HandleNames& handles, ObjectRecords& objects) noexcept {
  Counts* const counts = g_counts.load(std::memory_order_acquire);
  const std::uint32_t number = report.begin();
  Slot* const slot = counts == nullptr || number == 0 ? nullptr : find_slot(*counts, handle, false);
  if (slot == nullptr) return;
  const HandleInfo known = handles.recall(handle);
  if (known.name.empty()) {
    count_unknown_launch();
    return;
  }
  Module module;
  modules.find(known.module, module);
  objects.announce(report, module.code.object, {});
  begin_counting(*counts, number);
  bool added = false;
  const std::uint32_t kernel = find_or_add(*counts, known.name, module, added);
  if (kernel == 0) {
    count_unknown_launch();
    return;
  }
  if (added) write(report, counts->kernels[kernel - 1], 1);
  // The parent reports what it counted before fork.
  if (slot->report.load(std::memory_order_relaxed) != number)
    slot->launches.store(0, std::memory_order_relaxed);
  slot->launches.fetch_add(1, std::memory_order_relaxed);
  slot->report.store(number, std::memory_order_relaxed);
  slot->kernel.store(kernel, std::memory_order_release);
}

void forget_launches(const Locked& /*locked*/, std::uintptr_t handle) noexcept {
  Counts* const counts = g_counts.load(std::memory_order_acquire);
  Slot* const slot = counts == nullptr ? nullptr : find_slot(*counts, handle, false);
  if (slot == nullptr) return;
  flush_slot(*counts, *slot);
  slot->kernel.store(0, std::memory_order_release);
}

void write_launch_counts(const Locked& /*locked*/, Report& report) noexcept {
  if (!options().coverage) return;
  if (g_incomplete.load(std::memory_order_relaxed)) count_dropped();
  Counts* const counts = g_counts.load(std::memory_order_acquire);
  if (counts == nullptr || counts->report == 0 || counts->report != current_report()) return;
  for (Slot& slot : counts->slots)
    if (slot.handle.load(std::memory_order_relaxed) != 0) flush_slot(*counts, slot);
  for (const Kernel& kernel : counts->kernels)
    if (kernel.key != 0 && kernel.launches > 1) write(report, kernel, kernel.launches);
}

}  // namespace kshim::shim
