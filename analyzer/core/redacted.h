// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "kshim/report/redact.h"

namespace kshim::analysis {

/// A text with `…` in place of its secrets, by the rule of reports: people share what kshim prints.
inline std::string redacted(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  report::RedactedPieces pieces(text);
  for (std::string_view piece; pieces.next(piece);) out += piece;
  return out;
}

}  // namespace kshim::analysis
