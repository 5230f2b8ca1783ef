// SPDX-License-Identifier: Apache-2.0
// The one way from an input to findings with fixes: for `run`, `analyze`, `scan`, `explain`, and for `doctor`
// by its scan. They differ in the source.
#pragma once

#include "analyzer/advise/advice.h"
#include "analyzer/advise/fleet.h"

namespace kshim::verbs {

/// Where findings come from: reports, files or a log.
class Source {
 public:
  explicit Source(std::vector<core::Finding>& findings) : findings_(findings) {}
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  std::vector<core::Finding>& findings() { return findings_; }
  /// Reads the input and judges each part of it by itself. What says the same becomes one finding.
  virtual void judge() = 0;
  /// Judges what needs all of the input.
  virtual void join() {}
  virtual void sort() {}
  virtual void plan() {}
  /// Names that reports of other users give: they stand in no command.
  virtual const advise::ForeignNames& foreign() const;
  /// Advice for what was known before; nullptr: there is none.
  virtual advise::AdviceCache* given() const { return nullptr; }

 private:
  std::vector<core::Finding>& findings_;
};

void conclude(Source& source);

}  // namespace kshim::verbs
