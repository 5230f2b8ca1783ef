// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/merge.h"

#include <limits>
#include <unordered_set>

#include "analyzer/core/text.h"
#include "analyzer/diagnose/rules.h"

namespace kshim::diagnose {
using core::Evidence;
using core::Finding;
using core::Place;

namespace {

// A thousand ranks that fail alike are one story: a few of them are evidence enough.
constexpr std::size_t kMaxEvidence = 12;

constexpr std::size_t kMaxImages = 256;
constexpr std::size_t kMaxDevices = 256;
constexpr std::size_t kMaxRemarks = 16;
constexpr std::size_t kMaxFailures = 1024;
// After so many failures of one kind another one adds its kernel and to the count, nothing else that is read.
constexpr std::size_t kEnough = 64;

void add_new(std::vector<std::string>& to, const std::vector<std::string>& from, std::size_t most) {
  if (to == from) return;  // as ranks of one run have it
  if (from.size() <= 16) {
    for (const std::string& item : from) {
      if (to.size() < most && !core::contains(to, item)) to.push_back(item);
    }
    return;
  }
  const std::unordered_set<std::string_view> known(to.begin(), to.end());
  std::vector<std::string> added;
  for (const std::string& item : from) {
    if (known.count(item) == 0 && to.size() + added.size() < most) added.push_back(item);
  }
  to.insert(to.end(), std::make_move_iterator(added.begin()), std::make_move_iterator(added.end()));
}

// Two calls in one function are one place, where no line tells them apart: they would read alike.
bool same_place(const Place& a, const Place& b) {
  return a.file == b.file && a.line == b.line && a.function == b.function && a.object == b.object &&
         (a.offset == b.offset || !a.function.empty());
}

void add_kernels(Finding& to, const Finding& from) {
  const std::size_t before = to.kernels.size();
  add_new(to.kernels, from.kernels, core::kMaxKernels + 1);  // one more tells that there are more
  // Where neither list was cut, their union is the truth; else the larger number is a lower bound.
  const bool cut = to.kernels_total > before || from.kernels_total > from.kernels.size();
  to.kernels_total = cut ? std::max({to.kernels_total, from.kernels_total, std::uint64_t{to.kernels.size()}})
                         : std::uint64_t{to.kernels.size()};
  if (to.kernels.size() > core::kMaxKernels) to.kernels.resize(core::kMaxKernels);
  to.kernels_complete = to.kernels_complete && from.kernels_complete;
}

// The line of a launch says more than that of a load, which a runtime may do long before, for any reason.
bool is_nearer(const Finding& from, const Finding& to) {
  return !from.where.empty() && (to.where.empty() || from.near > to.near);
}

void add_places(Finding& to, std::vector<Place>&& from, bool nearer) {
  if (nearer) std::swap(to.where, from);
  for (Place& place : from) {
    const bool known =
        std::ranges::any_of(to.where, [&](const Place& other) { return same_place(other, place); });
    if (!known && to.where.size() < core::kMaxPlaces) to.where.push_back(std::move(place));
  }
}

void add_images(Finding& to, const Finding& from) {
  add_new(to.have, from.have, kMaxImages);
  for (const core::ImageVerdict& image : from.images) {
    const auto same = std::ranges::find_if(to.images, [&](const core::ImageVerdict& known) {
      return known.kind == image.kind && known.arch == image.arch && known.isa == image.isa &&
             known.fits == image.fits;
    });
    if (same == to.images.end() && to.images.size() < kMaxImages) to.images.push_back(image);
  }
}

}  // namespace

std::uint64_t saturated(std::uint64_t a, std::uint64_t b) {
  return a > std::numeric_limits<std::uint64_t>::max() - b ? std::numeric_limits<std::uint64_t>::max()
                                                           : a + b;
}

void merge(Finding& to, Finding&& from) {
  // What is better founded speaks; the rest is added to it.
  if (from.confidence > to.confidence) std::swap(to, from);
  to.severity = std::max(to.severity, from.severity);
  to.count = saturated(to.count, from.count);
  if (to.failed_call == from.failed_call) to.call_count = saturated(to.call_count, from.call_count);
  add_kernels(to, from);
  add_images(to, from);
  for (core::Device& row : from.devices) {
    if (to.devices.size() < kMaxDevices && !core::contains(to.devices, row))
      to.devices.push_back(std::move(row));
  }
  add_new(to.remarks, from.remarks, kMaxRemarks);
  add_new(to.unread, from.unread, kMaxUnread);
  for (core::ReportLine& row : from.failures)  // each is a line of its own: none is there already
    if (to.failures.size() < kMaxFailures) to.failures.push_back(std::move(row));
  for (Evidence& row : from.evidence) {
    const bool known =
        std::ranges::any_of(to.evidence, [&](const Evidence& other) { return other.text == row.text; });
    if (!known && to.evidence.size() < kMaxEvidence) to.evidence.push_back(std::move(row));
  }
  const bool nearer = is_nearer(from, to);
  const bool of_launch = nearer && from.near > to.near && !from.failed_kernel.empty();
  add_places(to, std::move(from.where), nearer);
  if (to.failed_kernel.empty() || of_launch) {
    to.failed_kernel = std::move(from.failed_kernel);
    to.kernel_source = std::move(from.kernel_source);
  } else if (to.failed_kernel == from.failed_kernel && to.kernel_source.file.empty()) {
    to.kernel_source = std::move(from.kernel_source);
  }
  if (nearer) to.near = from.near;
  if (to.package.empty()) to.package = std::move(from.package);
}

void merge_gpus(Finding& to, Finding&& from) {
  std::ranges::move(from.devices, std::back_inserter(to.devices));
  for (Evidence& row : from.evidence)
    if (std::ranges::none_of(
            to.evidence, [&](const Evidence& known) { return known.text == row.text && known.at == row.at; }))
      to.evidence.push_back(std::move(row));
  for (std::string& remark : from.remarks)
    if (!core::contains(to.remarks, remark)) to.remarks.push_back(std::move(remark));
  std::set<std::string> kernels(to.kernels.begin(), to.kernels.end());
  kernels.insert(from.kernels.begin(), from.kernels.end());
  to.kernels.assign(kernels.begin(), kernels.end());
  to.kernels_complete = to.kernels_complete && from.kernels_complete;
  to.kernels_total = std::max<std::uint64_t>({to.kernels_total, from.kernels_total, to.kernels.size()});
  if (from.about) to.about_others.push_back(std::move(from.about));
}

std::string key_of(const Finding& finding) {
  std::string out(row_of(finding.cause).name);
  const auto add = [&out](std::string_view part) {
    out += '\0';
    out += part;
  };
  // Of several files that are not there, each is the same failure.
  if (finding.code != core::kFileNotFound) {
    add(finding.object);
    add(finding.build_id);
  }
  add(finding.need);
  if (is_image_cause(finding.cause)) {
    // What lies in no file is told apart by what it holds.
    if (finding.object.empty())
      for (const std::string& image : finding.have) add(image);
  } else if (finding.code && finding.cause != core::Cause::benign_probe &&
             finding.cause != core::Cause::jit_tax) {
    add(std::to_string(*finding.code));
  }
  return out;
}

bool says_the_same(const Finding& a, const Finding& b) {
  return a.cause == b.cause && key_of(a) == key_of(b);
}

bool Advised::wants(const Finding& finding) {
  constexpr std::size_t kMax = 65536;
  std::string key = key_of(finding);
  if (const auto known = best_.find(key); known != best_.end()) {
    if (finding.confidence <= known->second) return false;
    known->second = finding.confidence;
  } else if (best_.size() < kMax) {
    best_.emplace(std::move(key), finding.confidence);
  }
  return true;
}

void FindingSet::add(Finding&& finding) {
  const auto [row, is_new] = by_key_.try_emplace(key_of(finding), findings_.size());
  if (is_new) {
    findings_.push_back(std::move(finding));
  } else {
    merge(findings_[row->second], std::move(finding));
  }
}

const Finding* FindingSet::same_as(const Finding& finding) const {
  const auto found = by_key_.find(key_of(finding));
  return found == by_key_.end() ? nullptr : &findings_[found->second];
}

bool is_told(const Finding& to, const Finding& from) {
  // A launch among many loads is what somebody wants to see.
  if (from.near > to.near && to.failures.size() < kMaxFailures) return false;
  return from.confidence <= to.confidence &&
         (to.failures.size() >= kEnough ||
          (to.evidence.size() >= kMaxEvidence && to.where.size() >= core::kMaxPlaces));
}

void merge_into(std::vector<Finding>& findings, Finding&& finding) {
  const auto same =
      std::ranges::find_if(findings, [&](const Finding& known) { return says_the_same(known, finding); });
  if (same == findings.end()) {
    findings.push_back(std::move(finding));
  } else {
    merge(*same, std::move(finding));
  }
}

bool is_hypothetical(const Finding& finding) {
  return finding.failures.empty() && !finding.devices.empty() &&
         std::ranges::all_of(finding.devices, [](const core::Device& device) {
           return device.kind == core::Device::Kind::target;
         });
}

void sort_findings(std::vector<Finding>& findings) {
  std::ranges::stable_sort(findings, [](const Finding& a, const Finding& b) {
    if (a.severity != b.severity) return a.severity > b.severity;
    if (is_hypothetical(a) != is_hypothetical(b)) return is_hypothetical(b);
    if (a.confidence != b.confidence) return a.confidence > b.confidence;
    return a.count > b.count;
  });
}

}  // namespace kshim::diagnose
