// SPDX-License-Identifier: Apache-2.0
// Answers about wheels that were fetched before, in $XDG_CACHE_HOME/kshim, else ~/.cache/kshim: of this user
// alone, and bounded. Without such a folder nothing is kept.
#pragma once

#include "analyzer/core/prelude.h"

namespace kshim::verbs {

class AnswerCache {
 public:
  AnswerCache();
  const std::filesystem::path& folder() const noexcept { return folder_; }
  /// What was kept for the question, not longer ago than `age`.
  std::optional<std::string> find(std::string_view question, std::chrono::seconds age) const;
  /// Replaces what was kept for it. The oldest answers go where there are too many.
  void keep(std::string_view question, std::string_view answer) const;

 private:
  std::filesystem::path file_of(std::string_view question) const;
  std::filesystem::path folder_;  ///< empty: there is none
};

}  // namespace kshim::verbs
