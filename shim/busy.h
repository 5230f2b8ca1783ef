// SPDX-License-Identifier: Apache-2.0
// This thread is inside the shim: what a signal handler or a driver function that the shim asks does
// meanwhile is not noted, so that nobody waits for himself.
#pragma once

namespace kshim::shim {

extern constinit thread_local bool t_busy;

class Busy {
 public:
  Busy() noexcept : first_(!t_busy) { t_busy = true; }
  ~Busy() {
    if (first_) t_busy = false;
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
  explicit operator bool() const noexcept { return first_; }

 private:
  bool first_;
};

}  // namespace kshim::shim
