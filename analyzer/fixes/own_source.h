// SPDX-License-Identifier: Apache-2.0
// What pip built here, from a folder or a repository (`pip install -e .`): it is built again from there, not
// from what an index has under its name.
#pragma once
#include <string>
#include <string_view>

namespace kshim::analysis {

/// The recipe's command with what it has pip install replaced by `source` (packages/direct_url.h). One
/// without pip, or whose other steps need a checkout that is not at hand, stays as it is.
std::string build_from(std::string command, std::string_view source);

/// The recipe's caveat without what tells where to run it, and with what an earlier build leaves behind.
std::string caveat_from(std::string_view caveat, std::string_view source);

/// How pip installs it again from there.
std::string install_from(std::string_view source);

}  // namespace kshim::analysis
