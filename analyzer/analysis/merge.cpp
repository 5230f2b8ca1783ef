// SPDX-License-Identifier: Apache-2.0
#include "analyzer/analysis/merge.h"

#include <algorithm>
#include <utility>

#include "analyzer/rules/rules.h"

namespace kshim::analysis {
namespace {

// A thousand ranks that fail alike are one story: a few of them are evidence enough.
constexpr std::size_t kMostEvidence = 12;
constexpr std::size_t kMostKernels = 1000;
constexpr std::size_t kMostPlaces = 3;

void add_new(std::vector<std::string>& to, const std::vector<std::string>& from) {
  for (const std::string& item : from) {
    if (std::find(to.begin(), to.end(), item) == to.end()) to.push_back(item);
  }
}

// Two calls in one function are one place, where no line tells them apart: they would read alike.
bool same_place(const Place& a, const Place& b) {
  return a.file == b.file && a.line == b.line && a.function == b.function && a.object == b.object &&
         (a.offset == b.offset || !a.function.empty());
}

void add_kernels(Finding& to, const Finding& from) {
  const std::size_t before = to.kernels.size();
  add_new(to.kernels, from.kernels);
  // Where neither list was cut, their union is the truth; else the larger number is a lower bound.
  const bool cut = to.kernels_total > before || from.kernels_total > from.kernels.size();
  to.kernels_total = cut ? std::max({to.kernels_total, from.kernels_total, std::uint64_t{to.kernels.size()}})
                         : std::uint64_t{to.kernels.size()};
  if (to.kernels.size() > kMostKernels) to.kernels.resize(kMostKernels);
  to.kernels_complete = to.kernels_complete && from.kernels_complete;
}

void add_images(Finding& to, const Finding& from) {
  add_new(to.have, from.have);
  for (const ImageVerdict& image : from.images) {
    const auto same = std::find_if(to.images.begin(), to.images.end(), [&](const ImageVerdict& known) {
      return known.kind == image.kind && known.arch == image.arch && known.isa == image.isa &&
             known.fits == image.fits;
    });
    if (same == to.images.end()) to.images.push_back(image);
  }
}

void merge(Finding& to, Finding&& from) {
  // What is better founded speaks; the rest is added to it.
  if (from.confidence > to.confidence) std::swap(to, from);
  to.severity = std::max(to.severity, from.severity);
  to.count += from.count;
  if (to.failed_call == from.failed_call) to.call_count += from.call_count;
  add_kernels(to, from);
  add_images(to, from);
  add_new(to.devices, from.devices);
  add_new(to.remarks, from.remarks);
  for (Evidence& row : from.evidence) {
    const bool known = std::any_of(to.evidence.begin(), to.evidence.end(),
                                   [&](const Evidence& other) { return other.text == row.text; });
    if (!known && to.evidence.size() < kMostEvidence) to.evidence.push_back(std::move(row));
  }
  for (Place& place : from.where) {
    const bool known = std::any_of(to.where.begin(), to.where.end(),
                                   [&](const Place& other) { return same_place(other, place); });
    if (!known && to.where.size() < kMostPlaces) to.where.push_back(std::move(place));
  }
  if (to.failed_kernel.empty()) {
    to.failed_kernel = std::move(from.failed_kernel);
    to.kernel_source = std::move(from.kernel_source);
  } else if (to.failed_kernel == from.failed_kernel && to.kernel_source.file.empty()) {
    to.kernel_source = std::move(from.kernel_source);
  }
  if (to.package.empty()) to.package = std::move(from.package);
}

}  // namespace

bool says_the_same(const Finding& a, const Finding& b) {
  if (a.cause != b.cause || a.object != b.object || a.need != b.need) return false;
  if (is_image_cause(a.cause)) return !a.object.empty() || a.have == b.have;
  return a.code == b.code || a.cause == Cause::benign_probe || a.cause == Cause::jit_tax;
}

void merge_into(std::vector<Finding>& findings, Finding&& finding) {
  const auto same = std::find_if(findings.begin(), findings.end(),
                                 [&](const Finding& known) { return says_the_same(known, finding); });
  if (same == findings.end()) {
    findings.push_back(std::move(finding));
  } else {
    merge(*same, std::move(finding));
  }
}

void sort_findings(std::vector<Finding>& findings) {
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    if (a.severity != b.severity) return a.severity > b.severity;
    if (a.confidence != b.confidence) return a.confidence > b.confidence;
    return a.count > b.count;
  });
}

}  // namespace kshim::analysis
