// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/files/container_memory.h"

#include <utility>

namespace kshim::scan {

void MemoryLease::raise(std::uint64_t bytes) {
  if (pool_ == nullptr) return;
  if (!exceeds_) {
    std::unique_lock guard(pool_->lock_);
    pool_->changed_.wait(guard, [&] { return bytes <= pool_->left_ || !pool_->exceeded_; });
    if (bytes <= pool_->left_) {
      pool_->left_ -= bytes;
    } else {
      // Its own share goes back, and it never waits again until it holds nothing: no two wait for each other.
      pool_->exceeded_ = exceeds_ = true;
      pool_->left_ += held_;
      pool_->changed_.notify_all();
    }
  }
  held_ += bytes;
}

void MemoryLease::lower(std::uint64_t bytes) {
  if (pool_ == nullptr || bytes == 0) return;
  held_ -= bytes;
  if (exceeds_ && held_ != 0) return;
  const std::lock_guard guard(pool_->lock_);
  if (std::exchange(exceeds_, false))
    pool_->exceeded_ = false;
  else
    pool_->left_ += bytes;
  pool_->changed_.notify_all();
}

}  // namespace kshim::scan
