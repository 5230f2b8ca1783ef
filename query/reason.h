// SPDX-License-Identifier: Apache-2.0
// Why an answer is what it is: a row of reasons.def, or a rule of select_image().
#pragma once
#include <cstdint>

#include "kshim/image/select.h"

namespace kshim::query {

enum class Reason : std::uint8_t {
  none,  ///< nothing is wrong
#define KSHIM_REASON(id, text) id,
#include "query/reasons.def"
#undef KSHIM_REASON
};

struct ReasonText {
  const char* id;
  const char* text;
};
ReasonText text_of(Reason reason) noexcept;
ReasonText text_of(image::Rule rule) noexcept;

}  // namespace kshim::query
