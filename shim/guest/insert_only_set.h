// SPDX-License-Identifier: Apache-2.0
// A set of hashed keys of what was written. Lock-free, of fixed size, insert only.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace kshim::shim {

template <std::size_t kSlots>
class InsertOnlySet {
 public:
  bool has(std::uint64_t key) const noexcept {
    if (key == 0) key = 1;
    for (std::size_t i = 0; i < kProbes; ++i)
      if (slots_[(key + i) % kSlots].load(std::memory_order_acquire) == key) return true;
    return false;
  }
  /// False if the key is in the set, or if the slots that it hashes to are full.
  bool is_first(std::uint64_t key) noexcept {
    if (key == 0) key = 1;
    for (std::size_t i = 0; i < kProbes; ++i) {
      auto& slot = slots_[(key + i) % kSlots];
      std::uint64_t holder = slot.load(std::memory_order_acquire);
      if (holder == 0 && slot.compare_exchange_strong(holder, key, std::memory_order_acq_rel)) return true;
      if (holder == key) return false;
    }
    return false;
  }

 private:
  static constexpr std::size_t kProbes = 16;
  std::atomic<std::uint64_t> slots_[kSlots]{};
};

}  // namespace kshim::shim
