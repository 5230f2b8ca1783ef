// SPDX-License-Identifier: Apache-2.0
#include "guest/text_buffer.h"

#include <atomic>
#include <cstring>

#include "guest/slices.h"
#include "guest/syscalls.h"

namespace kshim::shim {

// A bump allocator over 1 MiB blocks. A thread that loses the race for the end of a block wastes a few bytes.
std::string_view copy_to_storage(std::string_view text) noexcept {
  constexpr std::size_t kBlock = 1U << 20U;
  constexpr std::size_t kMaxBlocks = 64;
  struct Block {
    std::atomic<std::size_t> used;
    char bytes[kBlock - sizeof(std::atomic<std::size_t>)];
  };
  static std::atomic<Block*> g_block{nullptr};
  static std::atomic<std::size_t> g_blocks{0};
  if (text.size() + 1 > sizeof(Block::bytes) / 4) return {};
  for (;;) {
    Block* block = g_block.load(std::memory_order_acquire);
    if (block != nullptr) {
      const std::size_t start = block->used.fetch_add(text.size() + 1, std::memory_order_relaxed);
      if (start + text.size() + 1 <= sizeof(Block::bytes)) {
        if (!text.empty()) std::memcpy(block->bytes + start, text.data(), text.size());
        return {block->bytes + start, text.size()};
      }
    }
    if (g_blocks.fetch_add(1, std::memory_order_relaxed) >= kMaxBlocks) return {};
    void* fresh = raw::map_memory(sizeof(Block));
    if (fresh == nullptr) return {};
    if (!g_block.compare_exchange_strong(block, static_cast<Block*>(fresh), std::memory_order_acq_rel))
      raw::unmap_memory(fresh, sizeof(Block));
  }
}

Text<40> to_hex(Bytes bytes) noexcept {
  constexpr char kDigits[] = "0123456789abcdef";
  Text<40> out;
  for (const std::byte byte : bytes) {
    out.put(kDigits[static_cast<unsigned>(byte) >> 4U]);
    out.put(kDigits[static_cast<unsigned>(byte) & 15U]);
  }
  return out;
}

std::string_view base_name(std::string_view path) noexcept {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : part_of(path, slash + 1);
}

}  // namespace kshim::shim
