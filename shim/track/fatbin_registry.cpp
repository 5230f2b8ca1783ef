// SPDX-License-Identifier: Apache-2.0
#include "track/fatbin_registry.h"

#include <algorithm>
#include <cstring>

#include "guest/options.h"
#include "guest/syscalls.h"
#include "guest/timed_lock.h"
#include "kshim/image/fatbin.h"

namespace kshim::shim {
namespace {

// PyTorch registers about 100,000 kernels in 1,500 fatbins; untouched pages cost nothing. Registering
// appends: a kernel is two words, and the kernels of a fatbin stand together in runs. The table by host stub
// is made when somebody first asks.
constexpr std::uint32_t kFatbins = 1U << 15U;
constexpr std::uint32_t kRuns = 1U << 16U;
constexpr std::uint32_t kKernels = 1U << 18U;
constexpr unsigned kIndexBits = 19;
constexpr std::uint32_t kIndexSlots = 1U << kIndexBits;
constexpr std::uint32_t kProbes = 256;

struct Fatbin {
  abi::FatbinHandle handle;  // nullptr once unregistered
  std::uintptr_t wrapper;
  std::uintptr_t fatbin;
  std::uint32_t newest;  // run: index + 1
  std::uint32_t runs;    // that are in the table
};
struct Run {
  std::uint32_t fatbin;
  std::uint32_t first;  // kernel
  std::uint32_t count;
  std::uint32_t older;  // run of the same fatbin: index + 1
};
struct Kernel {
  std::uintptr_t host;
  const char* name;
};

/// Mapped when the first fatbin is registered.
struct Tables {
  Fatbin fatbins[kFatbins];
  Run runs[kRuns];  ///< in the order of their kernels
  Kernel kernels[kKernels];
  std::uint32_t moved[kFatbins];
  std::uint32_t fatbin_count;
  std::uint32_t run_count;
  std::uint32_t kernel_count;
  std::uint32_t gone;  ///< fatbins in the table that are unregistered
  std::uint32_t hint;  ///< the fatbin that was found last
  /// Kernels by host stub: number + 1, open addressing. Entries of kernels that are gone stay until it is
  /// rebuilt.
  std::uint32_t index[kIndexSlots];
  std::uint32_t index_used;
  std::uint32_t indexed;  ///< kernels that are in it
};

// A lock of its own, which nothing else is taken under: a program registers 100,000 kernels while it starts,
// and the shim's lock costs two system calls.
TimedLock g_lock;
Tables* g_tables = nullptr;  // under g_lock

bool open_tables() noexcept {
  if (g_tables == nullptr) g_tables = static_cast<Tables*>(raw::map_memory(sizeof(Tables), MAP_NORESERVE));
  return g_tables != nullptr;
}

/// Kernels are registered right after their fatbin, and fatbins go in the order that they came in or the
/// other way round: the search begins where the last one ended and goes both ways. kFatbins when there is
/// none.
template <class Matches>
std::uint32_t find_fatbin(Matches matches) noexcept {
  const auto is_at = [&matches](std::uint32_t i) {
    if (g_tables->fatbins[i].handle == nullptr || !matches(g_tables->fatbins[i])) return false;
    g_tables->hint = i;
    return true;
  };
  std::uint32_t below = g_tables->hint < g_tables->fatbin_count ? g_tables->hint + 1 : g_tables->fatbin_count;
  std::uint32_t above = below;
  while (below > 0 || above < g_tables->fatbin_count) {
    if (below > 0 && is_at(--below)) return below;
    if (above < g_tables->fatbin_count && is_at(above)) return above;
    if (above < g_tables->fatbin_count) ++above;
  }
  return kFatbins;
}
std::uint32_t find_handle(abi::FatbinHandle handle) noexcept {
  return find_fatbin([handle](const Fatbin& fatbin) { return fatbin.handle == handle; });
}

/// The wrapper lies in a loaded file's data: the program's own constructor has just handed it over.
std::uintptr_t fatbin_behind(std::uintptr_t wrapper) noexcept {
  const auto& fields = *reinterpret_cast<const image::FatbinWrapper*>(wrapper);
  return fields.magic == image::kWrapperMagic ? fields.fatbin : wrapper;
}

const Fatbin& fatbin_of(std::uint32_t kernel) noexcept {
  const Run* after =
      std::upper_bound(g_tables->runs, g_tables->runs + g_tables->run_count, kernel,
                       [](std::uint32_t wanted, const Run& run) { return wanted < run.first; });
  return g_tables->fatbins[after[-1].fatbin];
}

std::uint32_t& index_slot(std::uintptr_t host, std::uint32_t probe) noexcept {
  const std::uint64_t home = (host * 0x9e3779b97f4a7c15ULL) >> (64U - kIndexBits);
  return g_tables->index[(home + probe) % kIndexSlots];
}

void make_index() noexcept {
  if (g_tables->index_used + (g_tables->kernel_count - g_tables->indexed) > kIndexSlots / 4 * 3) {
    std::memset(g_tables->index, 0, sizeof g_tables->index);
    g_tables->index_used = g_tables->indexed = 0;
  }
  for (; g_tables->indexed < g_tables->kernel_count; ++g_tables->indexed) {
    std::uint32_t probe = 0;
    while (probe < kProbes && index_slot(g_tables->kernels[g_tables->indexed].host, probe) != 0) ++probe;
    if (probe == kProbes) continue;
    index_slot(g_tables->kernels[g_tables->indexed].host, probe) = g_tables->indexed + 1;
    ++g_tables->index_used;
  }
}

/// What stands last and is gone makes room again. Libraries mostly go in the order that they came in, or the
/// other way round.
void drop_tail() noexcept {
  while (g_tables->run_count > 0) {
    const Run& last = g_tables->runs[g_tables->run_count - 1];
    Fatbin& fatbin = g_tables->fatbins[last.fatbin];
    if (fatbin.handle != nullptr) break;
    --fatbin.runs;
    g_tables->kernel_count = last.first;
    --g_tables->run_count;
  }
  for (; g_tables->fatbin_count > 0; --g_tables->fatbin_count, --g_tables->gone) {
    const Fatbin& last = g_tables->fatbins[g_tables->fatbin_count - 1];
    if (last.handle != nullptr || last.runs != 0) break;
  }
  g_tables->indexed = std::min(g_tables->indexed, g_tables->kernel_count);
}

/// Moves what is left together, where a program has loaded and unloaded until a table was full.
void close_gaps() noexcept {
  if (g_tables->gone == 0) return;
  std::uint32_t fatbins = 0;
  for (std::uint32_t i = 0; i < g_tables->fatbin_count; ++i) {
    g_tables->moved[i] = g_tables->fatbins[i].handle == nullptr ? kFatbins : fatbins;
    if (g_tables->moved[i] == kFatbins) continue;
    Fatbin& kept = g_tables->fatbins[fatbins++];
    kept = g_tables->fatbins[i];
    kept.newest = kept.runs = 0;
  }
  std::uint32_t runs = 0;
  std::uint32_t kernels = 0;
  for (std::uint32_t i = 0; i < g_tables->run_count; ++i) {
    const Run run = g_tables->runs[i];
    if (g_tables->moved[run.fatbin] == kFatbins) continue;
    Fatbin& fatbin = g_tables->fatbins[g_tables->moved[run.fatbin]];
    std::memmove(g_tables->kernels + kernels, g_tables->kernels + run.first, run.count * sizeof(Kernel));
    g_tables->runs[runs] = {g_tables->moved[run.fatbin], kernels, run.count, fatbin.newest};
    kernels += run.count;
    fatbin.newest = ++runs;
    ++fatbin.runs;
  }
  g_tables->fatbin_count = fatbins;
  g_tables->run_count = runs;
  g_tables->kernel_count = kernels;
  g_tables->gone = 0;
  std::memset(g_tables->index, 0, sizeof g_tables->index);
  g_tables->index_used = g_tables->indexed = 0;
}

/// The run that the fatbin's next kernel goes to; nullptr when there is no room.
Run* run_for(std::uint32_t fatbin) noexcept {
  if (g_tables->run_count > 0 && g_tables->runs[g_tables->run_count - 1].fatbin == fatbin)
    return &g_tables->runs[g_tables->run_count - 1];
  if (g_tables->run_count == kRuns) return nullptr;
  g_tables->runs[g_tables->run_count] = {fatbin, g_tables->kernel_count, 0, g_tables->fatbins[fatbin].newest};
  g_tables->fatbins[fatbin].newest = ++g_tables->run_count;
  ++g_tables->fatbins[fatbin].runs;
  return &g_tables->runs[g_tables->run_count - 1];
}

}  // namespace

Registered registered_kernel(std::uintptr_t host) noexcept {
  const LockGuard guard(g_lock);
  if (!guard || g_tables == nullptr || host == 0) return {};
  make_index();
  for (std::uint32_t probe = 0; probe < kProbes; ++probe) {
    const std::uint32_t entry = index_slot(host, probe);
    if (entry == 0) break;
    if (entry > g_tables->kernel_count || g_tables->kernels[entry - 1].host != host) continue;
    const Fatbin& fatbin = fatbin_of(entry - 1);
    if (fatbin.handle != nullptr) return {g_tables->kernels[entry - 1].name, fatbin.wrapper};
  }
  return {};
}

void registered_kernels(std::uintptr_t fatbin, KernelNames& out) noexcept {
  const LockGuard guard(g_lock);
  if (!guard || g_tables == nullptr || fatbin == 0) return;
  const std::uint32_t index = find_fatbin([fatbin](const Fatbin& known) { return known.fatbin == fatbin; });
  if (index == kFatbins) return;
  for (std::uint32_t at = g_tables->fatbins[index].newest; at != 0; at = g_tables->runs[at - 1].older) {
    const Run& run = g_tables->runs[at - 1];
    out.total += run.count;
    for (std::uint32_t i = 0; i < run.count && out.count < KernelNames::kMax; ++i)
      out.names[out.count++] = g_tables->kernels[run.first + i].name;
  }
  out.complete = out.count == out.total;
}

namespace registered {

void fatbin(abi::FatbinHandle handle, std::uintptr_t wrapper) noexcept {
  if (!options().enabled || handle == nullptr || wrapper == 0) return;
  const LockGuard guard(g_lock);
  if (!guard || !open_tables()) return;
  if (g_tables->fatbin_count == kFatbins) close_gaps();
  if (g_tables->fatbin_count == kFatbins) return;
  g_tables->hint = g_tables->fatbin_count++;
  g_tables->fatbins[g_tables->hint] = {handle, wrapper, fatbin_behind(wrapper), 0, 0};
}

std::uintptr_t wrapper_of(abi::FatbinHandle handle) noexcept {
  const LockGuard guard(g_lock);
  const std::uint32_t index = guard && g_tables != nullptr ? find_handle(handle) : kFatbins;
  return index == kFatbins ? 0 : g_tables->fatbins[index].wrapper;
}

void fatbin_gone(abi::FatbinHandle handle) noexcept {
  const LockGuard guard(g_lock);
  const std::uint32_t index = guard && g_tables != nullptr ? find_handle(handle) : kFatbins;
  if (index == kFatbins) return;
  g_tables->fatbins[index].handle = nullptr;
  ++g_tables->gone;
  drop_tail();
}

void kernel(abi::FatbinHandle handle, std::uintptr_t host, const char* name) noexcept {
  if (!options().enabled || host == 0 || name == nullptr) return;
  const LockGuard guard(g_lock);
  if (!guard || g_tables == nullptr) return;
  if (g_tables->kernel_count == kKernels || g_tables->run_count == kRuns) close_gaps();
  const std::uint32_t fatbin = find_handle(handle);
  Run* run = fatbin == kFatbins || g_tables->kernel_count == kKernels ? nullptr : run_for(fatbin);
  if (run == nullptr) return;
  g_tables->kernels[g_tables->kernel_count++] = {host, name};
  ++run->count;
}

}  // namespace registered

}  // namespace kshim::shim
