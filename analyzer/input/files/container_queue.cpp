// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/files/container_queue.h"

#include <algorithm>

namespace kshim::scan {

void MemberQueue::sort() {
  // The order of equals is the directory's: runs are alike.
  std::stable_sort(rows_.begin(), rows_.end(),
                   [](const Row& a, const Row& b) { return a.compressed_size > b.compressed_size; });
}

std::optional<MemberQueue::Row> MemberQueue::take() noexcept {
  const std::size_t index = next_.fetch_add(1, std::memory_order_relaxed);
  if (index >= rows_.size()) return std::nullopt;
  return rows_[index];
}

}  // namespace kshim::scan
