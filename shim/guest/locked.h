// SPDX-License-Identifier: Apache-2.0
// The proof that the shim's lock is held.
#pragma once

namespace kshim::shim {

/// SlowPath gives the only one, with the State. Functions whose data lies outside of State ask for it.
class Locked {
 public:
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  friend struct State;
  Locked() = default;
};

}  // namespace kshim::shim
