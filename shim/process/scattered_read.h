// SPDX-License-Identifier: Apache-2.0
// Guarded reads of several places at once, and a cache of guarded pages. A library may be unmapped by another
// thread while it is read: a guarded read fails then, and a plain read would fault.
#pragma once
#include <cstddef>
#include <cstdint>

namespace kshim::shim {

/// One place to read from, and where the bytes go.
struct ReadPart {
  std::uintptr_t from = 0;
  void* to = nullptr;
  std::size_t size = 0;
};

/// Reads all parts, at most kMaxReadParts, with one system call where the kernel allows it. False unless all
/// were read.
constexpr std::size_t kMaxReadParts = 8;
bool read_scattered(const ReadPart* parts, std::size_t count) noexcept;

/// A cache of copied pages, for many look-ups in one library. The copies stay readable after the library is
/// unloaded.
class PageCache {
 public:
  PageCache() noexcept;
  ~PageCache();
  PageCache(const PageCache&) = delete;
  PageCache& operator=(const PageCache&) = delete;
  bool read(std::uintptr_t from, void* to, std::size_t size) noexcept;
  void clear() noexcept;
  /// The page of an address, for a read by the caller, which says by mark_read() that it was read. Empty
  /// without memory.
  ReadPart part_for(std::uintptr_t address) noexcept;
  void mark_read(std::uintptr_t address) noexcept;
  /// From now on at most `count` guarded reads; then every read fails that needs one.
  void allow(std::size_t count) noexcept { reads_ = count; }
  std::size_t allowed() const noexcept { return reads_; }

 private:
  struct Slots;
  const std::byte* page(std::uintptr_t number) noexcept;
  std::size_t reads_ = SIZE_MAX;
  Slots* slots_;  ///< nullptr without memory: each read goes to the kernel
};

}  // namespace kshim::shim
