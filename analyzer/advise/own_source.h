// SPDX-License-Identifier: Apache-2.0
// What pip built here, from a folder or a repository (`pip install -e .`): it is built again from there, not
// from what an index has under its name.
#pragma once
#include <string>
#include <string_view>

#include "analyzer/advise/build_plan.h"

namespace kshim::analysis {

struct RecipeCommand {
  std::string command;
  std::string caveat;
};

/// A recipe's command, and its caveat with what tells where to run it.
RecipeCommand build(const RecipeRow& recipe, const BuildPlan& plan, const RecipeWords& words);
/// The same with what pip installs replaced by `source` (owner/direct_url.h), or run in that folder; the
/// caveat tells what an earlier build leaves behind. As build() where the steps need a checkout and none is
/// at hand, or have nothing to do with one.
RecipeCommand build_from(std::string_view source, const RecipeRow& recipe, const BuildPlan& plan,
                         const RecipeWords& words);

/// How pip installs it again from there.
std::string install_from(std::string_view source);

}  // namespace kshim::analysis
