// SPDX-License-Identifier: Apache-2.0
// An array in mapped memory, without a heap. It grows by mapping twice the size; elements are copied as
// bytes. The blocks that it has grown out of stay mapped until release(): another thread may be reading them.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "guest/syscalls.h"

namespace kshim::shim {

template <class T>
class GrowingArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  /// Another thread may change the array meanwhile.
  std::size_t size() const noexcept {
    return std::atomic_ref<std::size_t>(const_cast<std::size_t&>(size_)).load(std::memory_order_acquire);
  }
  bool empty() const noexcept { return size_ == 0; }
  T& operator[](std::size_t index) noexcept { return items_[index]; }
  T& back() noexcept { return items_[size_ - 1]; }
  /// Copies an element while another thread may change the array; false past the end. The copy is valid only
  /// if the caller finds that nothing changed meanwhile.
  bool copy(std::size_t index, T& out) noexcept {
    const T* const item = peek(index);
    if (item != nullptr) std::memcpy(static_cast<void*>(&out), item, sizeof(T));
    return item != nullptr;
  }
  /// The same for one that the caller reads in place; nullptr past the end.
  const T* peek(std::size_t index) noexcept {
    // The size is read first: any array read later has room for that many elements.
    if (index >= size()) return nullptr;
    return std::atomic_ref<T*>(items_).load(std::memory_order_acquire) + index;
  }
  void clear() noexcept { set_size(0); }
  void release() noexcept {
    for (Block* block = block_; block != nullptr;) {
      const Block ends = *block;
      raw::unmap_memory(block, ends.bytes);
      block = ends.before;
    }
    *this = GrowingArray();
  }
  void pop() noexcept { set_size(size_ - 1); }
  /// False, with nothing changed, when there is no memory.
  bool insert(std::size_t index, const T& value) noexcept {
    if (!reserve(size_ + 1)) return false;
    std::memmove(static_cast<void*>(items_ + index + 1), items_ + index, (size_ - index) * sizeof(T));
    std::memcpy(static_cast<void*>(items_ + index), &value, sizeof(T));
    set_size(size_ + 1);
    return true;
  }
  bool push(const T& value) noexcept { return insert(size_, value); }
  void erase(std::size_t index) noexcept {
    std::memmove(static_cast<void*>(items_ + index), items_ + index + 1, (size_ - index - 1) * sizeof(T));
    set_size(size_ - 1);
  }
  /// All elements zero.
  bool assign_zero(std::size_t count) noexcept {
    if (!reserve(count)) return false;
    std::memset(static_cast<void*>(items_), 0, count * sizeof(T));
    set_size(count);
    return true;
  }

 private:
  /// At the beginning of each block.
  struct alignas(alignof(T) > alignof(void*) ? alignof(T) : alignof(void*)) Block {
    Block* before;  ///< the one that the array has grown out of
    std::size_t bytes;
  };

  void set_size(std::size_t size) noexcept {
    std::atomic_ref<std::size_t>(size_).store(size, std::memory_order_release);
  }
  bool reserve(std::size_t count) noexcept {
    if (count <= room_) return true;
    std::size_t bytes = block_ == nullptr ? kSmallest : block_->bytes * 2;
    while ((bytes - sizeof(Block)) / sizeof(T) < count) bytes *= 2;
    auto* const fresh = static_cast<Block*>(raw::map_memory(bytes));
    if (fresh == nullptr) return false;
    *fresh = {block_, bytes};
    auto* const items = reinterpret_cast<T*>(fresh + 1);
    if (items_ != nullptr)
      std::memcpy(static_cast<void*>(items), static_cast<const void*>(items_), size_ * sizeof(T));
    std::atomic_ref<T*>(items_).store(items, std::memory_order_release);
    block_ = fresh;
    room_ = (bytes - sizeof(Block)) / sizeof(T);
    return true;
  }

  static constexpr std::size_t kSmallest = 16384;
  T* items_ = nullptr;
  Block* block_ = nullptr;
  std::size_t size_ = 0;
  std::size_t room_ = 0;
};

}  // namespace kshim::shim
