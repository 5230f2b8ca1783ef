// SPDX-License-Identifier: Apache-2.0
#include "track/fatbin_registry.h"

#include <algorithm>
#include <iterator>

#include "guest/safe_memory.h"
#include "guest/syscalls.h"
#include "guest/timed_lock.h"
#include "kshim/image/fatbin.h"

namespace kshim::shim {
namespace {

// PyTorch registers about 100,000 kernels in 1,500 fatbins; untouched pages cost nothing. Fatbins and kernels
// are numbered from 1; 0 is none.
using Number = std::uint32_t;
constexpr Number kFatbins = 1U << 15U;
constexpr Number kKernels = 1U << 18U;
constexpr unsigned kHostBits = 16;

struct Fatbin {
  abi::FatbinHandle handle;  ///< nullptr: unregistered
  std::uintptr_t wrapper;
  std::uintptr_t fatbin;
  Number first;  ///< the number of its first kernel
  Number count;  ///< of its kernels
};
struct Kernel {
  std::uintptr_t host;
  const char* name;
  Number fatbin;
  Number next;  ///< of the same bucket
};

/// Rows are added at the end. What is unregistered stays there until the room is used up.
struct Tables {
  Fatbin fatbins[kFatbins];
  Kernel kernels[kKernels];
  Number by_host[1U << kHostBits];
  Number fatbin_count, kernel_count;
  Number last_found;  ///< fatbin: the kernels of one are registered in a row
  Number renumbered[kFatbins];

  Fatbin& fatbin(Number number) noexcept { return fatbins[number - 1]; }
  Kernel& kernel(Number number) noexcept { return kernels[number - 1]; }
  Number& bucket_of(std::uintptr_t host) noexcept {
    return by_host[(host * 0x9e3779b97f4a7c15ULL) >> (64U - kHostBits)];
  }
  bool is_registered(const Kernel& row) noexcept { return fatbin(row.fatbin).handle != nullptr; }

  /// Looks near the last one first: fatbins are unregistered one after the other, too.
  Number find(abi::FatbinHandle handle) noexcept {
    for (Number distance = 0; distance <= fatbin_count; ++distance)
      for (const Number number : {last_found + distance, last_found - distance})
        if (number - 1 < fatbin_count && fatbin(number).handle == handle) return last_found = number;
    return 0;
  }

  void link(Number number) noexcept {
    Number& bucket = bucket_of(kernel(number).host);
    kernel(number).next = bucket;
    bucket = number;
  }

  void add_fatbin(const Registration& added) noexcept {
    if (fatbin_count == kFatbins) compact();
    if (fatbin_count == kFatbins) return;
    fatbins[fatbin_count++] = {added.handle, added.address, added.fatbin, 0, 0};
    last_found = fatbin_count;
  }

  void add_kernel(const Registration& added) noexcept {
    Number owner = find(added.handle);
    if (owner == 0) return;
    for (Number at = bucket_of(added.address); at != 0; at = kernel(at).next)
      if (kernel(at).host == added.address && kernel(at).fatbin == owner) {
        kernel(at).name = added.kernel;  // registered again
        return;
      }
    if (kernel_count == kKernels) {
      compact();
      owner = find(added.handle);
    }
    if (kernel_count == kKernels) return;
    kernels[kernel_count++] = {added.address, added.kernel, owner, 0};
    link(kernel_count);
    if (fatbin(owner).count++ == 0) fatbin(owner).first = kernel_count;
  }

  void remove(abi::FatbinHandle handle) noexcept {
    if (const Number number = find(handle); number != 0) fatbin(number).handle = nullptr;
  }

  /// Drops the rows of what is unregistered.
  void compact() noexcept {
    Number count = 0;
    for (Number number = 1; number <= fatbin_count; ++number) {
      renumbered[number - 1] = fatbin(number).handle == nullptr ? 0 : ++count;
      if (renumbered[number - 1] != 0) fatbin(count) = fatbin(number);
    }
    fatbin_count = last_found = count;
    std::fill(std::begin(by_host), std::end(by_host), 0);
    count = 0;
    for (Number number = 1; number <= kernel_count; ++number) {
      const Number owner = renumbered[kernel(number).fatbin - 1];
      if (owner == 0) continue;
      if (fatbin(owner).first == number) fatbin(owner).first = count + 1;
      kernel(++count) = {kernel(number).host, kernel(number).name, owner, 0};
      link(count);
    }
    kernel_count = count;
  }
};

TimedLock g_lock;
Tables* g_tables = nullptr;  ///< mapped when the first fatbin is registered

}  // namespace

Registration fatbin_registration(abi::FatbinHandle handle, std::uintptr_t wrapper) noexcept {
  const auto& fields = *reinterpret_cast<const image::FatbinWrapper*>(wrapper);
  return {handle, wrapper, fields.magic == image::kWrapperMagic ? fields.fatbin : wrapper, nullptr};
}

void add_registration(const Registration& registration) noexcept {
  const LockGuard lock(g_lock);
  if (!lock) return;
  if (g_tables == nullptr) g_tables = static_cast<Tables*>(raw::map_memory(sizeof(Tables), MAP_NORESERVE));
  if (g_tables == nullptr) return;
  if (registration.fatbin != 0)
    g_tables->add_fatbin(registration);
  else if (registration.kernel != nullptr)
    g_tables->add_kernel(registration);
  else
    g_tables->remove(registration.handle);
}

Registered find_registered(std::uintptr_t host) noexcept {
  const LockGuard lock(g_lock);
  if (!lock || g_tables == nullptr || host == 0) return {};
  for (Number at = g_tables->bucket_of(host); at != 0; at = g_tables->kernel(at).next) {
    const Kernel& kernel = g_tables->kernel(at);
    if (kernel.host == host && g_tables->is_registered(kernel))
      return {readable_text(kernel.name), g_tables->fatbin(kernel.fatbin).wrapper};
  }
  return {};
}

void list_registered(std::uintptr_t fatbin, KernelNames& out) noexcept {
  const LockGuard lock(g_lock);
  if (!lock || g_tables == nullptr || fatbin == 0) return;
  Number number = g_tables->fatbin_count;
  const auto is_other = [&](const Fatbin& row) { return row.handle == nullptr || row.fatbin != fatbin; };
  while (number != 0 && is_other(g_tables->fatbin(number))) --number;
  if (number == 0) return;
  const Number count = g_tables->fatbin(number).count;
  for (Number at = g_tables->fatbin(number).first; out.total < count; ++at) {
    if (g_tables->kernel(at).fatbin != number) continue;
    ++out.total;
    if (out.count < KernelNames::kMax) out.names[out.count++] = readable_text(g_tables->kernel(at).name);
  }
  out.complete = out.count == out.total;
}

}  // namespace kshim::shim
