// SPDX-License-Identifier: Apache-2.0
#include "analyzer/core/gpu_conditions.h"

#include "analyzer/core/text.h"

namespace kshim::core {
namespace {

constexpr std::string_view kOperators = "<>=!";

/// One condition: "arch>=7.5", "cuda>=12.8", ">=7.5", "7.5.*".
std::optional<bool> meets_one(image::ComputeCapability gpu, image::Version cuda, Conditions form,
                              std::string_view part) {
  const std::size_t at = std::min(part.find_first_of(kOperators), part.size());
  const std::string_view name = form == Conditions::conda ? "arch" : part.substr(0, at);
  if (name != "arch" && (name != "cuda" || !cuda.known())) {
    if (at == 0 || at == part.size()) return std::nullopt;
    return true;
  }
  std::string_view rest = form == Conditions::conda ? part : part.substr(at);
  const std::string_view op = rest.substr(0, std::min(rest.find_first_not_of(kOperators), rest.size()));
  rest.remove_prefix(op.size());
  while (rest.ends_with('*') || rest.ends_with('.')) rest.remove_suffix(1);
  const auto than = image::parse_version(rest);
  if (!than) return std::nullopt;
  const image::Version have = name == "cuda" ? cuda : image::Version{gpu.major, gpu.minor};
  if (op == ">=") return have >= *than;
  if (op == ">") return have > *than;
  if (op == "<=") return have <= *than;
  if (op == "<") return have < *than;
  if (op == "!=") return have != *than;
  if (op == "=" || op == "==" || op.empty()) return have == *than;
  return std::nullopt;
}

}  // namespace

std::optional<bool> meets(image::ComputeCapability gpu, image::Version cuda, Conditions form,
                          std::string_view text) {
  std::optional<bool> any;
  for (const std::string& choice : split(text, form == Conditions::conda ? "|" : " \t\n")) {
    if (choice.empty()) continue;
    bool all = true;
    for (const std::string& part : split(choice, ", ")) {
      if (part.empty()) continue;
      const std::optional<bool> one = meets_one(gpu, cuda, form, part);
      if (!one) return std::nullopt;
      all = all && *one;
    }
    any = any.value_or(false) || all;
  }
  return any;
}

}  // namespace kshim::core
