// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/scan/render_place.h"

#include <string>
#include <unordered_map>

namespace kshim::scan {

std::vector<analysis::PlacedFinding> placed(const Scan& scan, const analysis::SourceRoot& root) {
  std::unordered_map<std::string, const ScannedObject*> objects;
  for (const ScannedObject& object : scan.objects) objects.emplace(object.name(), &object);
  std::vector<analysis::PlacedFinding> out =
      analysis::placed(scan.findings, root, scan.objects.empty() ? std::string() : scan.objects.front().path);
  for (analysis::PlacedFinding& finding : out) {
    const auto found = objects.find(finding.raw.object);
    if (found != objects.end()) finding.place = {found->second->path, 0, found->second->member};
  }
  return out;
}

}  // namespace kshim::scan
