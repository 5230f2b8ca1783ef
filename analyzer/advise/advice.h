// SPDX-License-Identifier: Apache-2.0
// What to do about a finding, what not to try, and what is fine.
#pragma once

#include "analyzer/diagnose/about.h"

namespace kshim::advise {

struct Advice {
  std::vector<core::Fix> fixes;  ///< ordered by what works soonest
  std::vector<core::DeadEnd> dead_ends;
  std::vector<std::string> remarks;
};

core::DeadEnd no_driver_update(std::string why);

/// A pure function of what is known.
Advice advise_on(const diagnose::Facts& at);
/// What the first fix does, without the GPU that it is for: one build, or the same release, is for several.
std::string gist_of(const Advice& advice);

/// Advice that was given, for what is known again: that of many reports. Which program failed makes no
/// difference where no command names it.
class AdviceCache {
 public:
  const Advice& of(diagnose::Facts at);

 private:
  struct Row {
    diagnose::Facts at;                  ///< without its program
    std::optional<std::string> program;  ///< where a command names it
    Advice advice;
  };
  std::unordered_multimap<std::string, Row> rows_;  ///< by file
};

/// The paths, file names, sources and channels that reports of other users give.
class ForeignNames {
 public:
  void add(const input::Report& report);
  /// Takes out the commands that hold one of them; all commands, where there are too many names to keep.
  void take_out_of(std::vector<core::Fix>& fixes) const;

 private:
  static constexpr std::size_t kMax = 65536;
  std::set<std::string> words_;
  bool too_many_ = false;
};

/// Gives each finding that carries what is known of it (Finding::about) its fixes, dead ends and remarks. The
/// findings are in the order in which they are shown. No fix of a finding whose `about` is foreign has a name
/// of `foreign` in a command.
void advise_on(std::vector<core::Finding>& findings, const ForeignNames& foreign = {},
               AdviceCache* given = nullptr);

// What the fix of one finding means for those of the others.

/// Takes away what contradicts the first fix of an earlier finding, or what that makes needless. The findings
/// are in the order in which they are shown, with their fixes and with what these depend on.
void settle(std::vector<core::Finding>& findings);

}  // namespace kshim::advise
