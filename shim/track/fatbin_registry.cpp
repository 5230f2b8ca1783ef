// SPDX-License-Identifier: Apache-2.0
#include "track/fatbin_registry.h"

#include <algorithm>
#include <cstring>

#include "failure/gaps.h"
#include "guest/errno_keeper.h"
#include "guest/options.h"
#include "guest/timed_lock.h"
#include "kshim/image/fatbin.h"
#include "track/registered.h"

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

// All of it under g_lock.
PatientLock g_lock;
Fatbin g_fatbins[kFatbins];
Run g_runs[kRuns];  // in the order of their kernels
Kernel g_kernels[kKernels];
std::uint32_t g_fatbin_count = 0;
std::uint32_t g_run_count = 0;
std::uint32_t g_kernel_count = 0;
std::uint32_t g_gone = 0;  // fatbins in the table that are unregistered
std::uint32_t g_hint = 0;  // the fatbin that was found last
// Kernels by host stub: index + 1, open addressing. Checked when it is read: entries of kernels that are gone
// stay until it is made anew.
std::uint32_t g_index[kIndexSlots];
std::uint32_t g_index_used = 0;
std::uint32_t g_indexed = 0;  // kernels that are in it

/// Kernels are registered right after their fatbin, and fatbins go in the order that they came in or the
/// other way round: the search begins where the last one ended and goes both ways. kFatbins when there is
/// none.
template <class Matches>
std::uint32_t find_fatbin(Matches matches) noexcept {
  const auto is_at = [&matches](std::uint32_t i) {
    if (g_fatbins[i].handle == nullptr || !matches(g_fatbins[i])) return false;
    g_hint = i;
    return true;
  };
  std::uint32_t below = g_hint < g_fatbin_count ? g_hint + 1 : g_fatbin_count;
  std::uint32_t above = below;
  while (below > 0 || above < g_fatbin_count) {
    if (below > 0 && is_at(--below)) return below;
    if (above < g_fatbin_count && is_at(above)) return above;
    if (above < g_fatbin_count) ++above;
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
      std::upper_bound(g_runs, g_runs + g_run_count, kernel,
                       [](std::uint32_t wanted, const Run& run) { return wanted < run.first; });
  return g_fatbins[after[-1].fatbin];
}

std::uint32_t& index_slot(std::uintptr_t host, std::uint32_t probe) noexcept {
  const std::uint64_t home = (host * 0x9e3779b97f4a7c15ULL) >> (64U - kIndexBits);
  return g_index[(home + probe) % kIndexSlots];
}

void make_index() noexcept {
  if (g_index_used + (g_kernel_count - g_indexed) > kIndexSlots / 4 * 3) {
    std::memset(g_index, 0, sizeof g_index);
    g_index_used = g_indexed = 0;
  }
  for (; g_indexed < g_kernel_count; ++g_indexed) {
    std::uint32_t probe = 0;
    while (probe < kProbes && index_slot(g_kernels[g_indexed].host, probe) != 0) ++probe;
    if (probe == kProbes) continue;
    index_slot(g_kernels[g_indexed].host, probe) = g_indexed + 1;
    ++g_index_used;
  }
}

/// What stands last and is gone makes room again. Libraries mostly go in the order that they came in, or the
/// other way round.
void drop_tail() noexcept {
  while (g_run_count > 0) {
    const Run& last = g_runs[g_run_count - 1];
    Fatbin& fatbin = g_fatbins[last.fatbin];
    if (fatbin.handle != nullptr) break;
    --fatbin.runs;
    g_kernel_count = last.first;
    --g_run_count;
  }
  for (; g_fatbin_count > 0; --g_fatbin_count, --g_gone) {
    const Fatbin& last = g_fatbins[g_fatbin_count - 1];
    if (last.handle != nullptr || last.runs != 0) break;
  }
  g_indexed = std::min(g_indexed, g_kernel_count);
}

/// Moves what is left together, where a program has loaded and unloaded until a table was full.
void close_gaps() noexcept {
  static std::uint32_t g_moved[kFatbins];
  if (g_gone == 0) return;
  std::uint32_t fatbins = 0;
  for (std::uint32_t i = 0; i < g_fatbin_count; ++i) {
    g_moved[i] = g_fatbins[i].handle == nullptr ? kFatbins : fatbins;
    if (g_moved[i] == kFatbins) continue;
    Fatbin& kept = g_fatbins[fatbins++];
    kept = g_fatbins[i];
    kept.newest = kept.runs = 0;
  }
  std::uint32_t runs = 0;
  std::uint32_t kernels = 0;
  for (std::uint32_t i = 0; i < g_run_count; ++i) {
    const Run run = g_runs[i];
    if (g_moved[run.fatbin] == kFatbins) continue;
    Fatbin& fatbin = g_fatbins[g_moved[run.fatbin]];
    std::memmove(g_kernels + kernels, g_kernels + run.first, run.count * sizeof(Kernel));
    g_runs[runs] = {g_moved[run.fatbin], kernels, run.count, fatbin.newest};
    kernels += run.count;
    fatbin.newest = ++runs;
    ++fatbin.runs;
  }
  g_fatbin_count = fatbins;
  g_run_count = runs;
  g_kernel_count = kernels;
  g_gone = 0;
  std::memset(g_index, 0, sizeof g_index);
  g_index_used = g_indexed = 0;
}

/// The run that the fatbin's next kernel goes to; nullptr when there is no room.
Run* run_for(std::uint32_t fatbin) noexcept {
  if (g_run_count > 0 && g_runs[g_run_count - 1].fatbin == fatbin) return &g_runs[g_run_count - 1];
  if (g_run_count == kRuns) return nullptr;
  g_runs[g_run_count] = {fatbin, g_kernel_count, 0, g_fatbins[fatbin].newest};
  g_fatbins[fatbin].newest = ++g_run_count;
  ++g_fatbins[fatbin].runs;
  return &g_runs[g_run_count - 1];
}

}  // namespace

Registered registered_kernel(std::uintptr_t host) noexcept {
  const LockGuard guard(g_lock);
  if (!guard || host == 0) return {};
  make_index();
  for (std::uint32_t probe = 0; probe < kProbes; ++probe) {
    const std::uint32_t entry = index_slot(host, probe);
    if (entry == 0) break;
    if (entry > g_kernel_count || g_kernels[entry - 1].host != host) continue;
    const Fatbin& fatbin = fatbin_of(entry - 1);
    if (fatbin.handle != nullptr) return {g_kernels[entry - 1].name, fatbin.wrapper};
  }
  return {};
}

void registered_kernels(std::uintptr_t fatbin, KernelNames& out) noexcept {
  const LockGuard guard(g_lock);
  if (!guard || fatbin == 0) return;
  const std::uint32_t index = find_fatbin([fatbin](const Fatbin& known) { return known.fatbin == fatbin; });
  if (index == kFatbins) return;
  for (std::uint32_t at = g_fatbins[index].newest; at != 0; at = g_runs[at - 1].older) {
    const Run& run = g_runs[at - 1];
    out.total += run.count;
    for (std::uint32_t i = 0; i < run.count && out.count < KernelNames::kMax; ++i)
      out.names[out.count++] = g_kernels[run.first + i].name;
  }
  out.complete = out.count == out.total;
}

namespace registered {

void fatbin(abi::FatbinHandle handle, std::uintptr_t wrapper) noexcept {
  if (!options().enabled || handle == nullptr || wrapper == 0) return;
  const LockGuard guard(g_lock);
  if (!guard) return;
  if (g_fatbin_count == kFatbins) close_gaps();
  if (g_fatbin_count == kFatbins) return;
  g_hint = g_fatbin_count++;
  g_fatbins[g_hint] = {handle, wrapper, fatbin_behind(wrapper), 0, 0};
}

void fatbin_complete(abi::FatbinHandle handle) noexcept {
  if (!options().enabled || options().targets.empty()) return;
  std::uintptr_t wrapper = 0;
  {
    const LockGuard guard(g_lock);
    const std::uint32_t index = guard ? find_handle(handle) : kFatbins;
    if (index == kFatbins) return;
    wrapper = g_fatbins[index].wrapper;
  }
  const ErrnoKeeper keeper;
  DeviceCode code;
  examine_memory(wrapper, false, code);
  note_gaps(code, {});
}

void fatbin_gone(abi::FatbinHandle handle) noexcept {
  const LockGuard guard(g_lock);
  const std::uint32_t index = guard ? find_handle(handle) : kFatbins;
  if (index == kFatbins) return;
  g_fatbins[index].handle = nullptr;
  ++g_gone;
  drop_tail();
}

void kernel(abi::FatbinHandle handle, std::uintptr_t host, const char* name) noexcept {
  if (!options().enabled || host == 0 || name == nullptr) return;
  const LockGuard guard(g_lock);
  if (!guard) return;
  if (g_kernel_count == kKernels || g_run_count == kRuns) close_gaps();
  const std::uint32_t fatbin = find_handle(handle);
  Run* run = fatbin == kFatbins || g_kernel_count == kKernels ? nullptr : run_for(fatbin);
  if (run == nullptr) return;
  g_kernels[g_kernel_count++] = {host, name};
  ++run->count;
}

}  // namespace registered

}  // namespace kshim::shim
