// SPDX-License-Identifier: Apache-2.0
#include "base/handles.h"

#include <sys/mman.h>

#include <mutex>

#include "base/log.h"

namespace kshim::sim {
namespace {

// 16 million handles of address space; memory is touched as handles are made. PyTorch with all its libraries
// has about a hundred thousand.
constexpr std::size_t kRangeBytes = std::size_t{16} << 24;
static_assert(sizeof(Cell) == 16);

struct Range {
  std::mutex lock;
  Cell* begin = nullptr;
  std::uint32_t used = 0;
  std::uint32_t free_head = 0;  ///< index + 1, 0 = none
};
// Leaked on purpose: libraries call the driver from exit handlers that run after static destructors.
Range& range() noexcept {
  static Range& instance = *new Range;
  return instance;
}
std::atomic<Cell*> g_begin{nullptr};
std::atomic<std::uint32_t> g_used{0};

bool reserve(Range& r) noexcept {
  void* memory = ::mmap(nullptr, kRangeBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    log_line(LogLevel::error, "cannot reserve address space for handles");
    return false;
  }
  r.begin = static_cast<Cell*>(memory);  // zero pages are cells of kind none
  g_begin.store(r.begin, std::memory_order_release);
  return true;
}

}  // namespace

void* new_handle(Kind kind, void* object) noexcept {
  Range& r = range();
  const std::lock_guard guard(r.lock);
  if (r.begin == nullptr && !reserve(r)) return nullptr;
  std::uint32_t index;
  if (r.free_head != 0) {
    index = r.free_head - 1;
    r.free_head = r.begin[index].next_free;
  } else {
    if (r.used == kRangeBytes / sizeof(Cell)) return nullptr;
    index = r.used++;
    g_used.store(r.used, std::memory_order_release);
  }
  Cell& cell = r.begin[index];
  cell.object.store(object, std::memory_order_relaxed);
  cell.kind.store(kind, std::memory_order_release);
  return &cell;
}

void end_handle(void* handle) noexcept {
  Range& r = range();
  const std::lock_guard guard(r.lock);
  auto* cell = static_cast<Cell*>(handle);
  cell->kind.store(Kind::none, std::memory_order_release);
  cell->object.store(nullptr, std::memory_order_relaxed);
  cell->next_free = r.free_head;
  r.free_head = static_cast<std::uint32_t>(cell - r.begin) + 1;
}

const Cell* cell_of(const void* handle) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(g_begin.load(std::memory_order_acquire));
  const auto at = reinterpret_cast<std::uintptr_t>(handle);
  const std::uintptr_t used = std::uintptr_t{g_used.load(std::memory_order_acquire)} * sizeof(Cell);
  if (begin == 0 || at < begin || at - begin >= used || (at - begin) % sizeof(Cell) != 0) return nullptr;
  return static_cast<const Cell*>(handle);
}

}  // namespace kshim::sim
