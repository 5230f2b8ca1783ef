// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/scan/render.h"

#include <unordered_map>

#include "analyzer/render/github.h"
#include "analyzer/render/sarif.h"

namespace kshim::scan {
namespace {

/// The findings with the file that is on disk, and the member inside it.
std::vector<analysis::PlacedFinding> placed(const Scan& scan, const analysis::SourceRoot& root) {
  std::unordered_map<std::string, const ScannedObject*> objects;
  for (const ScannedObject& object : scan.objects) objects.emplace(object.name(), &object);
  std::vector<analysis::PlacedFinding> out =
      analysis::placed(scan.findings, root, scan.objects.empty() ? std::string() : scan.objects.front().path);
  for (analysis::PlacedFinding& placed : out) {
    const auto found = objects.find(placed.finding.object);
    if (found != objects.end()) placed.place = {found->second->path, 0, found->second->member};
  }
  return out;
}

std::string render_sarif(const Scan& scan) {
  analysis::SarifRun run{.id = "kshim-scan/", .findings = {}, .notes = {}, .failures = {}};
  run.findings = placed(scan, run.root);
  (scan.named_unread ? run.failures : run.notes) = scan.notes;
  return analysis::sarif_log(run);
}

std::string render_github(const Scan& scan) {
  const auto root = analysis::SourceRoot::of_process();
  return analysis::github_commands(placed(scan, root), root, {}, scan.notes);
}

}  // namespace

std::string render(const Scan& scan, analysis::Format format, const analysis::RenderOptions& options) {
  switch (format) {
    case analysis::Format::json:
      return render_json(scan);
    case analysis::Format::sarif:
      return render_sarif(scan);
    case analysis::Format::junit:
      return render_junit(scan);
    case analysis::Format::github:
      return render_github(scan);
    default:
      return render_page(scan, format, options);
  }
}

}  // namespace kshim::scan
