// SPDX-License-Identifier: Apache-2.0
#include "query/reason.h"

namespace kshim::query {

ReasonText text_of(Reason reason) noexcept {
  switch (reason) {
#define KSHIM_REASON(id, text) \
  case Reason::id:             \
    return {#id, text};
#include "query/reasons.def"
#undef KSHIM_REASON
    case Reason::none:
      break;
  }
  return {"", ""};
}

ReasonText text_of(image::Rule rule) noexcept {
  const image::RuleText& text = image::rule_text(rule);
  return {text.name, text.text};
}

}  // namespace kshim::query
