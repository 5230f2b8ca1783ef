// SPDX-License-Identifier: Apache-2.0
// What advice must never say, whatever the situation: that a driver is fine which does not drive the GPU,
// that something is to be installed again which serves the GPU already, and that the same thing helps and
// does not.
#pragma once
#include <cstddef>

#include "analyzer/advise/advice.h"
#include "tests/support/command_names.h"

namespace kshim::test {

class HonestAdvice {
 public:
  void check(const Facts& at, const Advice& advice);
  /// Each promise was put to the test.
  void expect_enough() const;

 private:
  void check_driver(const Facts& at, const Advice& advice);
  void check_reinstall(const Facts& at, const Advice& advice);
  void check_dead_ends(const Facts& at, const Advice& advice);
  void check_sources(const Facts& at, const Advice& advice);

  std::size_t fine_ = 0;
  std::size_t contradicted_ = 0;
  std::size_t served_ = 0;
  std::size_t dead_ends_ = 0;
  std::size_t sources_ = 0;
};

}  // namespace kshim::test
