// SPDX-License-Identifier: Apache-2.0
// What pip built here, from a folder or a repository (`pip install -e .`): it is built again from there, not
// from what an index has under its name.
#pragma once
#include <string>
#include <string_view>

namespace kshim::analysis {

struct OwnBuild {
  std::string command;
  std::string caveat;
};

/// A recipe's command with what it has pip install replaced by `source` (packages/direct_url.h), or run in
/// that folder, and its caveat: without what tells where to run it, with what an earlier build leaves behind.
/// Both stay as they are where the steps need a checkout and none is at hand, or have nothing to do with one.
OwnBuild build_from(std::string_view source, std::string command, std::string_view caveat);

/// How pip installs it again from there.
std::string install_from(std::string_view source);

}  // namespace kshim::analysis
