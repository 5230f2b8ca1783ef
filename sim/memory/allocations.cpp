// SPDX-License-Identifier: Apache-2.0
#include "memory/allocations.h"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "context/context.h"
#include "device/product.h"
#include "memory/host_room.h"
#include "memory/pools.h"

namespace kshim::sim {
namespace {

constexpr std::size_t kAlignment = 512;  // cuMemAlloc: "suitably aligned for any kind of variable"; 512 seen
constexpr std::size_t kPagesFrom = std::size_t{256}
                                   << 10;  // below, the heap: the kernel allows 65,530 mappings
constexpr std::size_t kPage = 4096;

struct Table {
  std::shared_mutex lock;
  std::map<std::uintptr_t, Allocation> by_base;
  std::atomic<std::uint64_t> next_id{1};
  std::array<std::atomic<std::uint64_t>, kMaxDevices> used{};
};
Table& table() noexcept {
  static Table& instance = *new Table;
  return instance;
}

constexpr std::size_t round_up(std::size_t size, std::size_t unit) noexcept {
  return (size + unit - 1) / unit * unit;
}

bool on_device(MemoryKind kind) noexcept {
  return kind == MemoryKind::device || kind == MemoryKind::managed || kind == MemoryKind::global;
}

void* zeroed_memory(std::size_t size, std::size_t& pages) noexcept {
  if (size >= kPagesFrom) {
    pages = round_up(size, kPage);
    void* memory =
        ::mmap(nullptr, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? nullptr : memory;
  }
  pages = 0;
  const std::size_t rounded = round_up(size, kAlignment);
  void* memory = std::aligned_alloc(kAlignment, rounded);
  if (memory != nullptr) std::memset(memory, 0, rounded);
  return memory;
}

void give_back(const Allocation& allocation) noexcept {
  if (on_device(allocation.kind)) discharge(allocation.device, round_up(allocation.size, kAlignment));
  if (allocation.pool != nullptr) pool_discharge(allocation.pool, allocation.size);
  if (!allocation.owned) return;
  auto* memory = reinterpret_cast<void*>(allocation.base);
  if (allocation.pages != 0) {
    ::munmap(memory, allocation.pages);
  } else {
    std::free(memory);
  }
}

const Allocation* holder(const Table& t, std::uintptr_t address) noexcept {
  auto next = t.by_base.upper_bound(address);
  if (next == t.by_base.begin()) return nullptr;
  const Allocation& candidate = std::prev(next)->second;
  return address - candidate.base < candidate.size ? &candidate : nullptr;
}

}  // namespace

bool charge(const Device& device, std::size_t bytes) noexcept {
  auto& used = table().used[static_cast<std::size_t>(device.ordinal)];
  std::uint64_t before = used.load(std::memory_order_relaxed);
  do {
    if (bytes > device.memory_bytes || before > device.memory_bytes - bytes) return false;
  } while (!used.compare_exchange_weak(before, before + bytes, std::memory_order_relaxed));
  return true;
}

void discharge(int device, std::size_t bytes) noexcept {
  table().used[static_cast<std::size_t>(device)].fetch_sub(bytes, std::memory_order_relaxed);
}

std::uint64_t used_bytes(int device) noexcept {
  return table().used[static_cast<std::size_t>(device)].load(std::memory_order_relaxed);
}

CUresult allocate(Context& context, std::size_t size, MemoryKind kind, unsigned flags, Allocation& out,
                  void* pool) {
  if (size == 0) return CUDA_ERROR_INVALID_VALUE;
  if (on_device(kind) && size > context.device.memory_bytes)
    say_beyond_device(size, context.device.memory_bytes);
  if (size > PTRDIFF_MAX - kPage) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::size_t charged = round_up(size, kAlignment);
  if (on_device(kind) && !charge(context.device, charged)) return CUDA_ERROR_OUT_OF_MEMORY;
  Allocation made;
  void* memory = zeroed_memory(size, made.pages);
  if (memory == nullptr) {
    if (on_device(kind)) discharge(context.device.ordinal, charged);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  Table& t = table();
  made.base = reinterpret_cast<std::uintptr_t>(memory);
  made.size = size;
  made.kind = kind;
  made.context = &context;
  made.device = context.device.ordinal;
  made.id = t.next_id.fetch_add(1, std::memory_order_relaxed);
  made.flags = flags;
  made.pool = pool;
  const std::unique_lock guard(t.lock);
  t.by_base.insert_or_assign(made.base, made);
  out = made;
  return CUDA_SUCCESS;
}

CUresult adopt(Context* context, int device, std::uintptr_t base, std::size_t size, MemoryKind kind,
               unsigned flags) {
  Table& t = table();
  const std::unique_lock guard(t.lock);
  const auto next = t.by_base.lower_bound(base);
  if (holder(t, base) != nullptr || (next != t.by_base.end() && next->first - base < size)) {
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  }
  Allocation made;
  made.base = base;
  made.size = size;
  made.kind = kind;
  made.context = context;
  made.device = device;
  made.id = t.next_id.fetch_add(1, std::memory_order_relaxed);
  made.flags = flags;
  made.owned = false;
  t.by_base.emplace(base, made);
  return CUDA_SUCCESS;
}

bool find_allocation(std::uintptr_t address, Allocation& out) noexcept {
  Table& t = table();
  const std::shared_lock guard(t.lock);
  const Allocation* found = holder(t, address);
  if (found != nullptr) out = *found;
  return found != nullptr;
}

bool covers(std::uintptr_t address, std::size_t size) noexcept {
  Table& t = table();
  const std::shared_lock guard(t.lock);
  while (size != 0) {
    const Allocation* found = holder(t, address);
    if (found == nullptr) return false;
    const std::size_t here = found->size - (address - found->base);
    if (size <= here) return true;
    // Only mappings are joined: adjacent blocks of the heap are separate allocations.
    if (found->kind != MemoryKind::mapped) return false;
    address += here;
    size -= here;
  }
  return true;
}

bool make_zero(std::uintptr_t address, std::size_t size) noexcept {
  Allocation found;
  if (size < kPagesFrom || !find_allocation(address, found)) return false;
  if (found.pages == 0 || !found.owned || address - found.base + size > found.size) return false;
  const std::uintptr_t first = round_up(address, kPage);
  const std::uintptr_t last = (address + size) / kPage * kPage;
  if (::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED) != 0) return false;
  std::memset(reinterpret_cast<void*>(address), 0, first - address);
  std::memset(reinterpret_cast<void*>(last), 0, address + size - last);
  return true;
}

bool release(std::uintptr_t address, MemoryKind kind, MemoryKind or_kind) noexcept {
  Table& t = table();
  Allocation ended;
  {
    const std::unique_lock guard(t.lock);
    const auto found = t.by_base.find(address);
    if (found == t.by_base.end() || (found->second.kind != kind && found->second.kind != or_kind))
      return false;
    ended = found->second;
    t.by_base.erase(found);
  }
  give_back(ended);
  return true;
}

void free_allocations(const Context& context) noexcept {
  Table& t = table();
  std::vector<Allocation> ended;
  {
    const std::unique_lock guard(t.lock);
    for (auto each = t.by_base.begin(); each != t.by_base.end();) {
      if (each->second.context == &context) {
        ended.push_back(each->second);
        each = t.by_base.erase(each);
      } else {
        ++each;
      }
    }
  }
  for (const Allocation& allocation : ended) give_back(allocation);
}

}  // namespace kshim::sim
