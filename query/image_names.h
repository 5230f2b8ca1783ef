// SPDX-License-Identifier: Apache-2.0
// "sm_80 sm_90a compute_90": the images of some modules, each once.
#pragma once
#include <cstddef>
#include <span>

#include "kshim/image/select.h"

namespace kshim::query {

class ImageNames {
 public:
  void add(const image::Candidate& image) noexcept;
  /// Cubins first, each kind by architecture; " ..." at the end where there are more than fit.
  void write(std::span<char> out) const noexcept;

 private:
  static constexpr std::size_t kMax = 64;
  image::Candidate images_[kMax];
  std::size_t count_ = 0;
  bool more_ = false;
};

}  // namespace kshim::query
