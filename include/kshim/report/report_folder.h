// SPDX-License-Identifier: Apache-2.0
// The default folder for reports: one rule for the shim and the command, docs/security.md.
//
//   the working directory is the caller's or root's, no other user can write to it kshim-report/ in it
//   it is root's and sticky, as /tmp and /scratch                              kshim-report-UID/ in it, 0700
//   any other that another user owns or can write to                           kshim-report-UID/ in TMPDIR,
//   0700
//
// So root, also in a container, and a user never block each other's folder, and what lies in it is of one
// user. A folder of these names that is another user's, or that others can write to, is not used.
#pragma once
#include <sys/stat.h>

#include <cstdint>

#include "kshim/report/trusted_folder.h"

namespace kshim::report {

enum class DefaultFolder : std::uint8_t { here, own_here, temporary };

/// Whether a user other than owner, caller and root may add files to the folder or remove them. A group with
/// the number of a user is assumed to have no other member (user private groups).
inline bool others_may_write(const struct stat& folder, uid_t caller) noexcept {
  const bool private_group = folder.st_gid == folder.st_uid || folder.st_gid == caller;
  return (folder.st_mode & S_IWOTH) != 0 || ((folder.st_mode & S_IWGRP) != 0 && !private_group);
}

inline DefaultFolder default_folder(const struct stat& working, uid_t caller) noexcept {
  const bool others = others_may_write(working, caller);
  if (working.st_uid == 0 && (working.st_mode & S_ISVTX) != 0 && others) return DefaultFolder::own_here;
  return others || is_another_user(working.st_uid, caller) ? DefaultFolder::temporary : DefaultFolder::here;
}

/// Whether an existing default folder belongs to the caller.
inline bool is_own_folder(const struct stat& folder, uid_t caller) noexcept {
  return S_ISDIR(folder.st_mode) && folder.st_uid == caller && !others_may_write(folder, caller);
}

}  // namespace kshim::report
