// SPDX-License-Identifier: Apache-2.0
// Keeps secrets out of the report: what of an argument or of a variable's value may be written down.
#pragma once
#include <string_view>

#include "guest/text_buffer.h"

namespace kshim::shim {

using MaskedText = Text<2048>;

/// Walks over argv in order; what an argument shows may depend on the one before it.
class ArgumentMask {
 public:
  /// `--token X`, `--token=X`, `API_KEY=X`: the value becomes ***. `scheme://user:password@host`: the
  /// credentials do. A program after -c longer than 120 bytes becomes its length. Arguments shaped like a
  /// known service's tokens become ***.
  MaskedText next(std::string_view argument) noexcept;

 private:
  enum class Expects { plain, secret, program };
  Expects expects_ = Expects::plain;
};

/// Credentials in URLs only.
MaskedText mask_urls(std::string_view text) noexcept;

}  // namespace kshim::shim
