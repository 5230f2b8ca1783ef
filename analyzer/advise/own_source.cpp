// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/own_source.h"

#include <fmt/core.h>

#include <vector>

#include "analyzer/core/text.h"
#include "analyzer/owner/direct_url.h"

namespace kshim::analysis {
namespace {

using packages::kEditable;

std::string quoted(std::string_view source) {
  if (!source.starts_with(kEditable)) return shell_quote(source);
  return std::string(kEditable) + shell_quote(source.substr(kEditable.size()));
}

std::string joined(std::initializer_list<std::string_view> parts) {
  std::vector<std::string> out;
  for (const std::string_view part : parts)
    if (!part.empty()) out.emplace_back(part);
  return join(out, "; ");
}

}  // namespace

std::string install_from(std::string_view source) {
  return fmt::format("{} {}", pip_install(Pip::isolated), quoted(source));
}

RecipeCommand build(const RecipeRow& recipe, const BuildPlan& plan, const RecipeWords& words) {
  return {expand(recipe, plan, words), joined({recipe.where, recipe.caveat})};
}

RecipeCommand build_from(std::string_view source, const RecipeRow& recipe, const BuildPlan& plan,
                         const RecipeWords& words) {
  const std::string folder = packages::folder_of_source(source);
  const bool steps = recipe.pip != Pip::here && recipe.pip != Pip::isolated;
  if (steps && (folder.empty() || recipe.where.empty())) return build(recipe, plan, words);
  RecipeRow before = recipe;
  before.command = recipe.command.substr(0, recipe.command.find("{pip}"));
  std::string command = expand(before, plan, words);
  if (steps) command = fmt::format("cd {} && {}", shell_quote(folder), command);
  if (before.command.size() != recipe.command.size())
    command += fmt::format("{} {}", pip_install(recipe.pip),
                           !steps                          ? quoted(source)
                           : source.starts_with(kEditable) ? std::string(kEditable) + "."
                                                           : std::string("."));
  const std::string_view left = folder.empty()
                                    ? std::string_view()
                                    : "what an earlier build left in that folder (build/, where it holds no "
                                      "sources) may pass for up to date: delete it first";
  return {std::move(command), joined({recipe.caveat, left})};
}

}  // namespace kshim::analysis
