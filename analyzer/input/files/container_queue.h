// SPDX-License-Identifier: Apache-2.0
// One zip for several threads.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace kshim::scan {

/// Shared by calls of each_member() on the same bytes: each visits what no other has taken, the largest
/// members first, so that all end at about the same time. What is no zip is visited by the first that comes.
class MemberQueue {
 public:
  MemberQueue() = default;
  MemberQueue(const MemberQueue&) = delete;
  MemberQueue& operator=(const MemberQueue&) = delete;

 private:
  friend class Walk;
  friend class ZipWalk;
  struct Row {
    std::uint64_t compressed_size = 0;
    std::uint64_t directory_offset = 0;
  };
  void sort();
  std::optional<Row> take() noexcept;
  bool take_whole() noexcept { return !whole_.exchange(true); }

  std::once_flag listed_;
  std::vector<Row> rows_;  // not changed after listed_
  std::atomic<std::size_t> next_{0};
  std::atomic<std::uint64_t> read_{0};  // compressed bytes of members so far
  std::atomic<bool> whole_{false};
};

}  // namespace kshim::scan
