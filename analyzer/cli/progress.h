// SPDX-License-Identifier: Apache-2.0
// A bar on stderr for work that a person waits for: only on a terminal, only after a while, gone when done.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace kshim::cli {

class ProgressBar {
 public:
  /// Shorter work than `patience` needs no bar.
  explicit ProgressBar(std::string what, std::chrono::milliseconds patience = std::chrono::milliseconds(500));
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  /// `done` of `total`, in any unit.
  void update(std::uint64_t done, std::uint64_t total);

 private:
  std::string what_;
  std::chrono::steady_clock::time_point next_;
  bool on_terminal_;
  bool drawn_ = false;
};

}  // namespace kshim::cli
