// SPDX-License-Identifier: Apache-2.0
// Saves errno and restores it at the end of the scope.
#pragma once
#include <cerrno>

namespace kshim::shim {

class ErrnoKeeper {
 public:
  ErrnoKeeper() noexcept : saved_(errno) {}
  ~ErrnoKeeper() { errno = saved_; }
  ErrnoKeeper(const ErrnoKeeper&) = delete;
  ErrnoKeeper& operator=(const ErrnoKeeper&) = delete;

 private:
  int saved_;
};

}  // namespace kshim::shim
