// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <simdjson.h>

#include "analyzer/core/prelude.h"

namespace kshim::owner {

/// Empty where there is no such text.
inline std::string text_in(simdjson::dom::element object, std::string_view key) {
  std::string_view text;
  return object[key].get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

}  // namespace kshim::owner
