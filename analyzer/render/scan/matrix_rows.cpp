// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "analyzer/render/scan/matrix.h"

namespace kshim::scan {
namespace {

using analysis::ImageCount;

void add_images(const std::vector<ImageCount>& more, std::vector<ImageCount>& images) {
  for (const ImageCount& row : more) {
    const auto at = std::find_if(images.begin(), images.end(), [&](const ImageCount& known) {
      return known.candidate.kind == row.candidate.kind && known.candidate.arch == row.candidate.arch;
    });
    if (at == images.end()) {
      images.push_back(row);
    } else {
      at->count += row.count;
      at->bytes += row.bytes;
    }
  }
}

void add_verdict(const TargetVerdict& more, RowVerdict& sum) {
  const bool first_gap = sum.serves() && sum.lacking == 0;
  if (more.lacking != 0) sum.picks = first_gap ? more.picks : sum.picks && more.picks;
  sum.sass += more.sass;
  sum.jit += more.jit;
  sum.lacking += more.lacking;
  if (more.kernels_lacking) sum.kernels_lacking = sum.kernels_lacking.value_or(0) + *more.kernels_lacking;
  const Outcome outcome = outcome_of(more);
  sum.worst = std::max(sum.worst, outcome);
  if (outcome == Outcome::none) ++sum.files_none;
  if (outcome != Outcome::no_kernels) ++sum.files;
}

// The file's name without the folders that all rows have in common.
std::size_t common_folder(const Scan& scan) {
  if (scan.objects.empty()) return 0;
  std::string common = scan.objects.front().name();
  for (const ScannedObject& object : scan.objects) {
    const std::string name = object.name();
    const auto ends = std::mismatch(common.begin(), common.end(), name.begin(), name.end());
    common.erase(ends.first, common.end());
  }
  const std::size_t slash = common.rfind('/');
  return slash == std::string::npos ? 0 : slash + 1;
}

// An archive may hold several members of one name, and they are not the same.
void number_namesakes(std::vector<MatrixRow>& rows) {
  struct Seen {
    std::size_t all = 0;
    std::size_t so_far = 0;
  };
  std::map<std::string, Seen> seen;
  for (const MatrixRow& row : rows) ++seen[row.name].all;
  for (MatrixRow& row : rows) {
    Seen& same = seen.at(row.name);
    if (same.all > 1) row.name += fmt::format(" ({} of {})", ++same.so_far, same.all);
  }
}

}  // namespace

Outcome outcome_of(const TargetVerdict& verdict) {
  if (verdict.nothing_fits()) return Outcome::none;
  if (!verdict.serves()) return Outcome::part;
  if (verdict.jit != 0) return Outcome::jit;
  return verdict.sass != 0 ? Outcome::sass : Outcome::no_kernels;
}

std::vector<MatrixRow> matrix_rows(const Scan& scan, bool by_distribution) {
  std::vector<MatrixRow> out;
  std::map<std::string, std::size_t> packages;
  const std::size_t skip = common_folder(scan);
  for (const ScannedObject& object : scan.objects) {
    const bool summed = by_distribution && !object.package.empty();
    const auto known = summed ? packages.find(object.package.label()) : packages.end();
    const std::size_t at = known == packages.end() ? out.size() : known->second;
    if (at == out.size()) {
      out.push_back({.name = summed ? object.package.label() : object.name().substr(skip),
                     .files = 0,
                     .images = {},
                     .targets = {}});
      if (summed) packages.emplace(object.package.label(), at);
    }
    MatrixRow& row = out[at];
    ++row.files;
    row.bytes += object.bytes;
    row.requested = row.requested || object.requested;
    row.modules += object.modules;
    add_images(object.images, row.images);
    for (std::size_t i = 0; i < object.targets.size(); ++i) {
      if (i == row.targets.size()) row.targets.push_back({{.target = object.targets[i].target}});
      add_verdict(object.targets[i], row.targets[i]);
    }
  }
  number_namesakes(out);
  for (MatrixRow& row : out) {
    if (row.files > 1) row.name += fmt::format(" ({} files)", row.files);
  }
  return out;
}

}  // namespace kshim::scan
