// SPDX-License-Identifier: Apache-2.0
#include "track/fatbin_registry.h"

#include <atomic>
#include <bit>

#include "guest/safe_memory.h"
#include "guest/syscalls.h"
#include "kshim/image/fatbin.h"

namespace kshim::shim {
namespace {

// --- the ring

constexpr std::uint64_t kStaged = 1024;
constexpr std::uint64_t kMix = 0x9e3779b97f4a7c15ULL;

/// `check` mixes the other words, each turned by another number of bits, and the entry's number. It tells an
/// entry that is whole from one that is being written, was left half written, or was written late by a thread
/// that was stopped meanwhile.
struct Staged {
  std::atomic<std::uintptr_t> handle;
  std::atomic<std::uintptr_t> address;
  std::atomic<std::uintptr_t> fatbin;
  std::atomic<std::uintptr_t> kernel;
  std::atomic<std::uint64_t> check;
};
/// Entries taken..claimed-1 are in the ring.
struct Ring {
  std::atomic<std::uint64_t> claimed;
  std::atomic<std::uint64_t> taken;
  Staged entries[kStaged];
};
std::atomic<Ring*> g_ring{nullptr};

std::uint64_t check_of(std::uint64_t number, const Registration& of) noexcept {
  return (number + 1) * kMix ^ reinterpret_cast<std::uintptr_t>(of.handle) ^ std::rotl(of.address, 13) ^
         std::rotl(of.fatbin, 29) ^ std::rotl(reinterpret_cast<std::uintptr_t>(of.kernel), 47);
}

Ring* open_ring() noexcept {
  Ring* ring = g_ring.load(std::memory_order_acquire);
  if (ring != nullptr) return ring;
  void* const fresh = raw::map_memory(sizeof(Ring));
  if (fresh == nullptr) return nullptr;
  if (g_ring.compare_exchange_strong(ring, static_cast<Ring*>(fresh), std::memory_order_acq_rel))
    return static_cast<Ring*>(fresh);
  raw::unmap_memory(fresh, sizeof(Ring));
  return ring;
}

/// How often await_entry() yields. Under load, each may take all other threads' time slices: after a wait in
/// vain, half as many. An entry that a signal handler has left by siglongjmp is never written.
constexpr int kMaxYields = 10;
std::atomic<int> g_yields{kMaxYields};

/// False where the entry is not whole.
bool read_entry(const Staged& entry, std::uint64_t number, Registration& out) noexcept {
  const std::uint64_t check = entry.check.load(std::memory_order_acquire);
  out = {reinterpret_cast<abi::FatbinHandle>(entry.handle.load(std::memory_order_relaxed)),
         entry.address.load(std::memory_order_relaxed), entry.fatbin.load(std::memory_order_relaxed),
         reinterpret_cast<const char*>(entry.kernel.load(std::memory_order_relaxed))};
  return check == check_of(number, out);
}

/// The same for an entry that its thread may be about to write: waits for a moment.
[[gnu::noinline, gnu::cold]] bool await_entry(const Staged& entry, std::uint64_t number,
                                              Registration& out) noexcept {
  constexpr int kSpins = 90;
  const int yields = g_yields.load(std::memory_order_relaxed);
  for (int i = 0; i < kSpins + yields; ++i) {
    if (read_entry(entry, number, out)) {
      g_yields.store(kMaxYields, std::memory_order_relaxed);
      return true;
    }
    if (i >= kSpins) raw::call(SYS_sched_yield);
  }
  g_yields.store(yields / 2, std::memory_order_relaxed);
  return false;
}

}  // namespace

Registration fatbin_registration(abi::FatbinHandle handle, std::uintptr_t wrapper) noexcept {
  const auto& fields = *reinterpret_cast<const image::FatbinWrapper*>(wrapper);
  return {handle, wrapper, fields.magic == image::kWrapperMagic ? fields.fatbin : wrapper, nullptr};
}

bool stage_registration(const Registration& registration) noexcept {
  Ring* const ring = open_ring();
  if (ring == nullptr) return true;  // no memory: nothing is recorded
  std::uint64_t number = ring->claimed.load(std::memory_order_relaxed);
  do {
    if (number - ring->taken.load(std::memory_order_acquire) >= kStaged) return false;
  } while (!ring->claimed.compare_exchange_weak(number, number + 1, std::memory_order_acq_rel,
                                                std::memory_order_relaxed));
  Staged& entry = ring->entries[number % kStaged];
  entry.handle.store(reinterpret_cast<std::uintptr_t>(registration.handle), std::memory_order_relaxed);
  entry.address.store(registration.address, std::memory_order_relaxed);
  entry.fatbin.store(registration.fatbin, std::memory_order_relaxed);
  entry.kernel.store(reinterpret_cast<std::uintptr_t>(registration.kernel), std::memory_order_relaxed);
  entry.check.store(check_of(number, registration), std::memory_order_release);
  return true;
}

// --- the tables

// PyTorch registers about 100,000 kernels in 1,500 fatbins; untouched pages cost nothing. Fatbins and kernels
// are numbered from 1; 0 ends a list.
namespace {

using Number = std::uint32_t;
constexpr Number kFatbins = 1U << 15U;
constexpr Number kKernels = 1U << 18U;
constexpr unsigned kFatbinBits = 13;
constexpr unsigned kHostBits = 16;

struct Fatbin {
  abi::FatbinHandle handle;
  std::uintptr_t wrapper;
  std::uintptr_t fatbin;
  Number first;  ///< kernel
  Number last;
  Number next_of_handle;   ///< in the bucket; of free entries: the next free one
  Number next_of_address;  ///< in the bucket
};
struct Kernel {
  std::uintptr_t host;
  const char* name;
  Number fatbin;
  Number next;  ///< of the same fatbin; of free entries: the next free one
};

std::size_t bucket_of(std::uintptr_t key, unsigned bits) noexcept {
  return static_cast<std::size_t>((key * kMix) >> (64U - bits));
}

/// Takes an entry out of the list that begins at `head`.
template <class Next>
void unlink(Number& head, Number entry, const Next& next) noexcept {
  Number* at = &head;
  while (*at != 0 && *at != entry) at = &next(*at);
  if (*at == entry) *at = next(entry);
}

/// The first free entry, or else the next one that was never used; 0 = none.
template <class Next>
Number allocate(Number& free, Number& used, Number most, const Next& next) noexcept {
  if (free == 0) return used == most ? 0 : ++used;
  const Number entry = free;
  free = next(entry);
  return entry;
}

}  // namespace

struct FatbinRegistry::Tables {
  Fatbin fatbins[kFatbins];
  Kernel kernels[kKernels];
  Number next_of_host[kKernels];  ///< of kernels, in the bucket
  Number by_handle[1U << kFatbinBits];
  Number by_address[1U << kFatbinBits];
  Number by_host[1U << kHostBits];
  Number fatbins_used, free_fatbin;
  Number kernels_used, free_kernel;
  Number last_found;  ///< fatbin: the kernels of one are registered in a row

  Fatbin& fatbin(Number number) noexcept { return fatbins[number - 1]; }
  Kernel& kernel(Number number) noexcept { return kernels[number - 1]; }
  Number& handle_bucket(abi::FatbinHandle handle) noexcept {
    return by_handle[bucket_of(reinterpret_cast<std::uintptr_t>(handle), kFatbinBits)];
  }
  Number& address_bucket(std::uintptr_t address) noexcept {
    return by_address[bucket_of(address, kFatbinBits)];
  }
  Number& host_bucket(std::uintptr_t host) noexcept { return by_host[bucket_of(host, kHostBits)]; }

  Number find(abi::FatbinHandle handle) noexcept {
    if (last_found != 0 && fatbin(last_found).handle == handle) return last_found;
    Number at = handle_bucket(handle);
    while (at != 0 && fatbin(at).handle != handle) at = fatbin(at).next_of_handle;
    return last_found = at;
  }

  void add_fatbin(const Registration& added) noexcept {
    const Number number = allocate(free_fatbin, fatbins_used, kFatbins,
                                   [this](Number of) -> Number& { return fatbin(of).next_of_handle; });
    if (number == 0) return;
    Number& of_handle = handle_bucket(added.handle);
    Number& of_address = address_bucket(added.fatbin);
    fatbin(number) = {added.handle, added.address, added.fatbin, 0, 0, of_handle, of_address};
    of_handle = of_address = last_found = number;
  }

  void add_kernel(const Registration& added) noexcept {
    const Number owner = find(added.handle);
    for (Number at = host_bucket(added.address); at != 0; at = next_of_host[at - 1])
      if (kernel(at).host == added.address && kernel(at).fatbin == owner) {
        kernel(at).name = added.kernel;  // registered again
        return;
      }
    const Number number = owner == 0 ? 0
                                     : allocate(free_kernel, kernels_used, kKernels,
                                                [this](Number of) -> Number& { return kernel(of).next; });
    if (number == 0) return;
    kernel(number) = {added.address, added.kernel, owner, 0};
    next_of_host[number - 1] = host_bucket(added.address);
    host_bucket(added.address) = number;
    Fatbin& fat = fatbin(owner);
    (fat.last == 0 ? fat.first : kernel(fat.last).next) = number;
    fat.last = number;
  }

  void remove(abi::FatbinHandle handle) noexcept {
    Number* at = &handle_bucket(handle);
    while (*at != 0 && fatbin(*at).handle != handle) at = &fatbin(*at).next_of_handle;
    const Number number = *at;
    if (number == 0) return;
    last_found = 0;
    Fatbin& gone = fatbin(number);
    *at = gone.next_of_handle;
    for (Number of = gone.first; of != 0; of = kernel(of).next)
      unlink(host_bucket(kernel(of).host), of,
             [this](Number each) -> Number& { return next_of_host[each - 1]; });
    if (gone.last != 0) {
      kernel(gone.last).next = free_kernel;
      free_kernel = gone.first;
    }
    unlink(address_bucket(gone.fatbin), number,
           [this](Number of) -> Number& { return fatbin(of).next_of_address; });
    gone.next_of_handle = free_fatbin;
    free_fatbin = number;
  }
};

void FatbinRegistry::apply(const Registration& registration) noexcept {
  if (tables_ == nullptr) tables_ = static_cast<Tables*>(raw::map_memory(sizeof(Tables), MAP_NORESERVE));
  if (tables_ == nullptr) return;
  if (registration.fatbin != 0)
    tables_->add_fatbin(registration);
  else if (registration.kernel != nullptr)
    tables_->add_kernel(registration);
  else
    tables_->remove(registration.handle);
}

void FatbinRegistry::update() noexcept {
  Ring* const ring = g_ring.load(std::memory_order_acquire);
  if (ring == nullptr) return;
  const std::uint64_t end = ring->claimed.load(std::memory_order_acquire);
  for (std::uint64_t number = ring->taken.load(std::memory_order_relaxed); number != end; ++number) {
    Registration registration;
    const Staged& entry = ring->entries[number % kStaged];
    if (read_entry(entry, number, registration) || await_entry(entry, number, registration))
      apply(registration);
    ring->taken.store(number + 1, std::memory_order_release);
  }
}

Registered FatbinRegistry::find_kernel(std::uintptr_t host) noexcept {
  update();
  if (tables_ == nullptr || host == 0) return {};
  for (Number at = tables_->host_bucket(host); at != 0; at = tables_->next_of_host[at - 1]) {
    const Kernel& kernel = tables_->kernel(at);
    if (kernel.host == host) return {readable_text(kernel.name), tables_->fatbin(kernel.fatbin).wrapper};
  }
  return {};
}

void FatbinRegistry::list_kernels(std::uintptr_t fatbin, KernelNames& out) noexcept {
  update();
  if (tables_ == nullptr || fatbin == 0) return;
  Number number = tables_->address_bucket(fatbin);
  while (number != 0 && tables_->fatbin(number).fatbin != fatbin)
    number = tables_->fatbin(number).next_of_address;
  if (number == 0) return;
  for (Number at = tables_->fatbin(number).first; at != 0; at = tables_->kernel(at).next) {
    ++out.total;
    if (out.count < KernelNames::kMax) out.names[out.count++] = readable_text(tables_->kernel(at).name);
  }
  out.complete = out.count == out.total;
}

std::uintptr_t FatbinRegistry::wrapper_of(abi::FatbinHandle handle) noexcept {
  update();
  const Number number = tables_ == nullptr ? 0 : tables_->find(handle);
  return number == 0 ? 0 : tables_->fatbin(number).wrapper;
}

}  // namespace kshim::shim
