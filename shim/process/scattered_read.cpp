// SPDX-License-Identifier: Apache-2.0
#include "process/scattered_read.h"

#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "guest/safe_memory.h"
#include "guest/syscalls.h"

namespace kshim::shim {

bool read_scattered(const ReadPart* parts, std::size_t count) noexcept {
  if (count > kMaxReadParts) return false;
  iovec local[kMaxReadParts] = {};
  iovec remote[kMaxReadParts] = {};
  std::size_t wanted = 0;
  for (std::size_t i = 0; i < count; ++i) {
    local[i] = {parts[i].to, parts[i].size};
    remote[i] = {reinterpret_cast<void*>(parts[i].from), parts[i].size};
    wanted += parts[i].size;
  }
  const KernelRead answer = read_by_kernel(local, remote, count, wanted);
  if (answer != KernelRead::refused) return answer == KernelRead::done;
  for (std::size_t i = 0; i < count; ++i)
    if (!read_memory(parts[i].from, parts[i].to, parts[i].size)) return false;
  return true;
}

namespace {
constexpr std::size_t kPage = 4096;
constexpr std::size_t kSlots = 32;
}  // namespace

struct PageCache::Slots {
  std::uintptr_t number[kSlots];  ///< page number + 1; 0 = empty
  alignas(64) std::byte bytes[kSlots][kPage];
};

PageCache::PageCache() noexcept : slots_(static_cast<Slots*>(raw::map_memory(sizeof(Slots)))) {}

PageCache::~PageCache() {
  if (slots_ != nullptr) raw::unmap_memory(slots_, sizeof(Slots));
}

const std::byte* PageCache::page(std::uintptr_t number) noexcept {
  const std::size_t slot = number % kSlots;
  if (slots_->number[slot] != number + 1) {
    slots_->number[slot] = 0;
    if (reads_ == 0) return nullptr;
    --reads_;
    if (!read_memory(number * kPage, slots_->bytes[slot], kPage)) return nullptr;
    slots_->number[slot] = number + 1;
  }
  return slots_->bytes[slot];
}

void PageCache::clear() noexcept {
  if (slots_ != nullptr) std::memset(slots_->number, 0, sizeof slots_->number);
}

ReadPart PageCache::part_for(std::uintptr_t address) noexcept {
  if (slots_ == nullptr) return {};
  const std::uintptr_t number = address / kPage;
  slots_->number[number % kSlots] = 0;
  return {number * kPage, slots_->bytes[number % kSlots], kPage};
}

void PageCache::mark_read(std::uintptr_t address) noexcept {
  const std::uintptr_t number = address / kPage;
  if (slots_ != nullptr) slots_->number[number % kSlots] = number + 1;
}

bool PageCache::read(std::uintptr_t from, void* to, std::size_t size) noexcept {
  if (slots_ == nullptr) {
    if (reads_ == 0) return false;
    --reads_;
    return read_memory(from, to, size);
  }
  auto* out = static_cast<std::byte*>(to);
  while (size != 0) {
    const std::size_t offset = from % kPage;
    const std::size_t part = std::min(size, kPage - offset);
    const std::byte* bytes = page(from / kPage);
    if (bytes == nullptr) return false;
    std::memcpy(out, bytes + offset, part);
    from += part;
    out += part;
    size -= part;
  }
  return true;
}

}  // namespace kshim::shim
