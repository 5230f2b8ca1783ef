// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/share_place.h"

#include <algorithm>

#include "analyzer/core/text.h"

namespace kshim::analysis {

FilePlace place_of(const Finding& finding, const SourceRoot& root) {
  const auto has_line = [](const Place& place) { return !place.file.empty() && place.line != 0; };
  const auto in_checkout = [&](const Place& place) {
    return has_line(place) && root.name(place.file).inside;
  };
  auto own = std::find_if(finding.where.begin(), finding.where.end(), in_checkout);
  if (own == finding.where.end()) own = std::find_if(finding.where.begin(), finding.where.end(), has_line);
  if (own != finding.where.end()) return {own->file, own->line, {}};
  if (!finding.object.empty()) return {finding.object, 0, {}};
  const auto proof = std::find_if(finding.evidence.begin(), finding.evidence.end(),
                                  [](const Evidence& evidence) { return !evidence.at.empty(); });
  return proof == finding.evidence.end()
             ? FilePlace{}
             : FilePlace{proof->at.file, static_cast<unsigned>(proof->at.line), {}};
}

std::vector<PlacedFinding> placed(const std::vector<Finding>& findings, const SourceRoot& root,
                                  const std::string& otherwise) {
  std::vector<PlacedFinding> out;
  out.reserve(findings.size());
  for (const Finding& finding : findings) {
    out.push_back({finding, place_of(finding, root)});
    if (out.back().place.file.empty()) out.back().place.file = otherwise;
  }
  return out;
}

std::string harmless_lines(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (at != 0) out += '\n';
    out += harmless(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

std::string clipped(std::string text, std::size_t bytes) {
  constexpr std::string_view kMore = "...";
  if (text.size() <= bytes || bytes < kMore.size()) return text;
  std::size_t end = bytes - kMore.size();
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
  return text.append(kMore);
}

}  // namespace kshim::analysis
