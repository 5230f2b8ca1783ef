// SPDX-License-Identifier: Apache-2.0
#include "registration.h"

#include <atomic>

#include "gaps.h"
#include "guest.h"
#include "kshim/image/fatbin.h"
#include "options.h"
#include "registered.h"

namespace kshim::shim {
namespace {

// PyTorch registers about 100,000 kernels in 1,500 fatbins; untouched pages cost nothing.
constexpr std::size_t kKernels = 1U << 18U;
constexpr unsigned kKernelBits = 18;
constexpr std::size_t kProbes = 64;
constexpr std::uint32_t kFatbins = 1U << 15U;

struct Fatbin {
  std::atomic<abi::FatbinHandle> handle;  // nullptr once unregistered
  std::atomic<std::uintptr_t> wrapper;
  std::atomic<std::uintptr_t> fatbin;
  std::atomic<std::uint32_t> newest;  // kernel: index + 1
};
struct Kernel {
  std::atomic<std::uintptr_t> host;
  std::atomic<const char*> name;
  std::atomic<std::uint32_t> fatbin;  // index + 1
  std::atomic<std::uint32_t> older;   // kernel of the same fatbin: index + 1
};
Fatbin g_fatbins[kFatbins];
std::atomic<std::uint32_t> g_fatbin_count{0};
Kernel g_kernels[kKernels];

std::size_t home_of(std::uintptr_t host) noexcept {
  return static_cast<std::size_t>((host * 0x9e3779b97f4a7c15ULL) >> (64U - kKernelBits));
}

std::uint32_t known_fatbins() noexcept {
  const std::uint32_t count = g_fatbin_count.load(std::memory_order_acquire);
  return count < kFatbins ? count : kFatbins;
}

/// Where the last one was found.
std::atomic<std::uint32_t> g_hint{0};

/// Kernels are registered right after their fatbin, and fatbins go in the order that they came in or the
/// other way round: the search begins where the last one ended and goes both ways. kFatbins when there is
/// none.
std::uint32_t find_fatbin(abi::FatbinHandle handle) noexcept {
  if (handle == nullptr) return kFatbins;
  const std::uint32_t count = known_fatbins();
  const std::uint32_t hint = g_hint.load(std::memory_order_relaxed);
  const auto is_at = [handle](std::uint32_t i) {
    if (g_fatbins[i].handle.load(std::memory_order_acquire) != handle) return false;
    g_hint.store(i, std::memory_order_relaxed);
    return true;
  };
  std::uint32_t below = hint < count ? hint + 1 : count;  // what is below has not been looked at
  std::uint32_t above = below;
  while (below > 0 || above < count) {
    if (below > 0 && is_at(--below)) return below;
    if (above < count && is_at(above)) return above;
    if (above < count) ++above;
  }
  return kFatbins;
}

/// The wrapper lies in a loaded file's data: the program's own constructor has just handed it over.
std::uintptr_t fatbin_behind(std::uintptr_t wrapper) noexcept {
  const auto& fields = *reinterpret_cast<const image::FatbinWrapper*>(wrapper);
  return fields.magic == image::kWrapperMagic ? fields.fatbin : wrapper;
}

bool alive(const Kernel& kernel, std::uint32_t& index) noexcept {
  index = kernel.fatbin.load(std::memory_order_acquire) - 1;
  return index < known_fatbins() && g_fatbins[index].handle.load(std::memory_order_acquire) != nullptr;
}

}  // namespace

Registered registered_kernel(std::uintptr_t host) noexcept {
  if (host == 0) return {};
  for (std::size_t i = 0; i < kProbes; ++i) {
    const Kernel& kernel = g_kernels[(home_of(host) + i) % kKernels];
    const std::uintptr_t holder = kernel.host.load(std::memory_order_acquire);
    if (holder == 0) return {};
    std::uint32_t fatbin = 0;
    const char* name = kernel.name.load(std::memory_order_acquire);
    if (holder != host || name == nullptr || !alive(kernel, fatbin)) continue;
    return {name, g_fatbins[fatbin].wrapper.load(std::memory_order_relaxed)};
  }
  return {};
}

void registered_kernels(std::uintptr_t fatbin, KernelNames& out) noexcept {
  if (fatbin == 0) return;
  for (std::uint32_t i = 0; i < known_fatbins(); ++i) {
    if (g_fatbins[i].handle.load(std::memory_order_acquire) == nullptr ||
        g_fatbins[i].fatbin.load(std::memory_order_relaxed) != fatbin)
      continue;
    out.complete = true;
    std::uint32_t at = g_fatbins[i].newest.load(std::memory_order_acquire);
    // A host stub that was registered anew may have left the chain: what was counted before is enough then.
    for (std::size_t steps = 0; at != 0 && steps < kKernels; ++steps) {
      const Kernel& kernel = g_kernels[at - 1];
      const char* name = kernel.name.load(std::memory_order_acquire);
      if (kernel.fatbin.load(std::memory_order_acquire) != i + 1 || name == nullptr ||
          out.count == KernelNames::kMax) {
        out.complete = false;
        return;
      }
      out.names[out.count++] = name;
      at = kernel.older.load(std::memory_order_acquire);
    }
  }
}

namespace registered {

void fatbin(abi::FatbinHandle handle, std::uintptr_t wrapper) noexcept {
  if (!options().enabled || handle == nullptr || wrapper == 0) return;
  const std::uint32_t index = g_fatbin_count.fetch_add(1, std::memory_order_acq_rel);
  if (index >= kFatbins) return;
  g_fatbins[index].wrapper.store(wrapper, std::memory_order_relaxed);
  g_fatbins[index].fatbin.store(fatbin_behind(wrapper), std::memory_order_relaxed);
  g_fatbins[index].handle.store(handle, std::memory_order_release);
  g_hint.store(index, std::memory_order_relaxed);
}

void fatbin_complete(abi::FatbinHandle handle) noexcept {
  if (!options().enabled || options().targets.empty()) return;
  const std::uint32_t index = find_fatbin(handle);
  if (index == kFatbins) return;
  const ErrnoKeeper keeper;
  DeviceCode code;
  examine_memory(g_fatbins[index].wrapper.load(std::memory_order_relaxed), false, code);
  note_gaps(code, {});
}

void fatbin_gone(abi::FatbinHandle handle) noexcept {
  const std::uint32_t index = find_fatbin(handle);
  if (index != kFatbins) g_fatbins[index].handle.store(nullptr, std::memory_order_release);
}

void kernel(abi::FatbinHandle handle, std::uintptr_t host, const char* name) noexcept {
  if (!options().enabled || host == 0 || name == nullptr) return;
  const std::uint32_t fatbin = find_fatbin(handle);
  if (fatbin == kFatbins) return;
  for (std::size_t i = 0; i < kProbes; ++i) {
    Kernel& slot = g_kernels[(home_of(host) + i) % kKernels];
    std::uintptr_t holder = slot.host.load(std::memory_order_acquire);
    if (holder == 0 && slot.host.compare_exchange_strong(holder, host, std::memory_order_acq_rel))
      holder = host;
    if (holder != host) continue;
    slot.name.store(name, std::memory_order_release);
    if (slot.fatbin.exchange(fatbin + 1, std::memory_order_acq_rel) == fatbin + 1) return;
    const auto index = static_cast<std::uint32_t>(&slot - g_kernels) + 1;
    slot.older.store(g_fatbins[fatbin].newest.exchange(index, std::memory_order_acq_rel),
                     std::memory_order_release);
    return;
  }
}

}  // namespace registered

}  // namespace kshim::shim
