// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/core/finding.h"

namespace kshim::diagnose {

/// A key that is equal for findings to merge: one cause, one build of one file, one need, and for what is not
/// about images one code.
std::string key_of(const core::Finding& finding);
bool says_the_same(const core::Finding& a, const core::Finding& b);
/// Adds what is new in `from`, which says the same: kernels, devices, evidence, count.
void merge(core::Finding& to, core::Finding&& from);
/// Adds what is said of another GPU's lack of the same file: its device, its kernels, its evidence, and what
/// its fixes depend on.
void merge_gpus(core::Finding& to, core::Finding&& from);
/// Of Finding::unread; a list of this length may have been cut.
constexpr std::size_t kMaxUnread = 1024;
/// The finding that gets the advice: of findings to merge, the first with the highest confidence gets the
/// advice, and merge() keeps that; the others need none, which is most of the work on a thousand
/// ranks that fail alike.
class Advised {
 public:
  /// Whether this one is to be advised.
  bool wants(const core::Finding& finding);

 private:
  std::unordered_map<std::string, double> best_;
};
/// The failures of one report, gathered: what says the same is one finding. Found by a hash, because a
/// process whose every module fails to load has hundreds of them.
class FindingSet {
 public:
  void add(core::Finding&& finding);
  /// The one that says the same, as far as it is told by now; nullptr if there is none.
  const core::Finding* same_as(const core::Finding& finding) const;
  std::vector<core::Finding>& findings() { return findings_; }

 private:
  std::vector<core::Finding> findings_;
  std::unordered_map<std::string, std::size_t> by_key_;
};
/// Whether `from`, which says the same and is no better founded, needs neither evidence nor places of its
/// own.
bool is_told(const core::Finding& to, const core::Finding& from);
/// Adds the finding, or what is new in it to the one that says the same: kernels, devices, evidence, count.
void merge_into(std::vector<core::Finding>& findings, core::Finding&& finding);
/// The sum, or the largest number there is.
std::uint64_t saturated(std::uint64_t a, std::uint64_t b);
/// Nothing failed, and no GPU at hand is concerned: what would fail on a target.
bool is_hypothetical(const core::Finding& finding);
/// Most severe first, then most certain, then most frequent.
void sort_findings(std::vector<core::Finding>& findings);

}  // namespace kshim::diagnose
