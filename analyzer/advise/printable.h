// SPDX-License-Identifier: Apache-2.0
// Which commands may be printed: a person pastes them into bash, zsh, fish or PowerShell.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/core/finding.h"
#include "analyzer/input/report/report.h"

namespace kshim::analysis {

/// Takes out the commands that hold a word which not every shell takes as it is (shell_quote).
void keep_printable(std::vector<Fix>& fixes);

/// Takes out the commands that hold one of these strings, or the name or the stem of one that is a path. For
/// a report of another user: nothing of it gets into a command.
void keep_free_of(const std::vector<std::string>& strings, std::vector<Fix>& fixes);

/// The same for every path, source and channel that a report of another user gives, in all of its findings.
void keep_free_of_paths(const Report& report, std::vector<Finding>& findings);

/// Where a path leads, if that is something of the caller's own in one of the caches that data/ names, below
/// the caller's home: what a command may delete. Empty for anything else, whatever its name pretends.
std::string removable_cache_entry(std::string_view path);

}  // namespace kshim::analysis
