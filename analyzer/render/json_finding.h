// SPDX-License-Identifier: Apache-2.0
// A finding as JSON, for every schema that has findings, and what such JSON is made with.
#pragma once
#include <nlohmann/json.hpp>

#include "analyzer/core/finding.h"

namespace kshim::analysis {

using Json = nlohmann::ordered_json;

/// Keys stand in the order of the contract, additions behind them. What is not known is null; lists are never
/// null.
Json to_json(const Finding& finding);
Json package_json(const PackageName& package);
/// Pure ASCII with a newline at the end: what a stranger's file holds cannot steer a terminal, and is not
/// lost. Bytes that are no UTF-8 become U+FFFD, and `##[` is written so that GitHub's runner sees no command.
std::string dumped(const Json& json);

inline Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }
inline Json version_or_null(image::Version version) {
  return version.known() ? Json(image::to_name(version).view()) : Json(nullptr);
}
template <class T>
Json value_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
template <class Items, class Make>
Json json_list(const Items& items, Make&& make) {
  Json out = Json::array();
  for (const auto& item : items) out.push_back(make(item));
  return out;
}

/// `knowledge` and `knowledge_files`: the tables that the answer is by. Last in every JSON.
void add_knowledge(Json& out);

}  // namespace kshim::analysis
