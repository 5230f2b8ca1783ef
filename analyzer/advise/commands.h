// SPDX-License-Identifier: Apache-2.0
// Which commands may be printed: a person pastes them into bash, zsh, fish or PowerShell.
#pragma once

#include "analyzer/advise/advice.h"
#include "analyzer/advise/fixes.h"

namespace kshim::advise {

/// Takes out the commands that hold a word which not every shell takes as it is (shell_quote).
void keep_printable(std::vector<core::Fix>& fixes);

/// Where a path leads, if that is something of the caller's own in one of the caches that data/ names, below
/// the caller's home: what a command may delete. Empty for anything else, whatever its name pretends.
std::string removable_cache_entry(std::string_view path);

/// For a program of another language than Python: no command of pip, python or conda. What then has none
/// comes last.
void keep_for_language(const diagnose::Facts& at, FixDrafts& fixes);

/// What lies in the Nix store is built for the list of nixpkgs.
void keep_for_nix(const diagnose::Facts& at, FixDrafts& fixes);
/// For what conda installed: conda's own step in place of pip's, and none where it has none.
void keep_for_conda(const diagnose::Facts& at, FixDrafts& fixes);

/// For a user of Windows: no command of Linux alone. The others are printed for PowerShell.
void keep_for_windows(const diagnose::Facts& at, FixDrafts& fixes);

}  // namespace kshim::advise
