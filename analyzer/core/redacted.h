// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <string>

#include "kshim/base/hash.h"
#include "kshim/report/redact.h"

namespace kshim::core {

/// A text with `…` in place of its secrets, by the rule of reports: people share what kshim prints. Reports
/// repeat the same paths and names: a thread remembers some texts without a secret.
inline std::string redacted(std::string_view text, report::Content content) {
  constexpr std::size_t kMaxLength = 512;
  thread_local std::array<std::array<std::string, 1024>, 2> clean_texts;
  auto& clean = clean_texts[static_cast<std::size_t>(content)];
  std::string* known = nullptr;
  if (text.size() <= kMaxLength) {
    known = &clean[content_hash(bytes_of(text)) % clean.size()];
    if (*known == text) return *known;
  }
  std::string out;
  out.reserve(text.size());
  report::RedactedPieces pieces(text, content);
  for (std::string_view piece; pieces.next(piece);) out += piece;
  if (known != nullptr && out == text) *known = out;
  return out;
}

}  // namespace kshim::core
