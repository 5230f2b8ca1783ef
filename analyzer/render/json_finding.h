// SPDX-License-Identifier: Apache-2.0
// A finding as JSON, for every schema that has findings, and what such JSON is made with.
#pragma once
#include <nlohmann/json.hpp>

#include "analyzer/core/finding.h"
#include "analyzer/render/formats.h"

namespace kshim::render {

using Json = nlohmann::ordered_json;

/// Keys stand in the order of the contract, additions behind them. What is not known is null; lists are never
/// null.
template <class T>
Json to_json(const T& value);
template <>
Json to_json(const core::Finding& finding);
template <>
Json to_json(const core::PackageName& package);
template <>
inline Json to_json(const core::Severity& severity) {
  return to_name(severity);
}
template <>
inline Json to_json(const core::Assumed& what) {
  return to_name(what);
}
/// Pure ASCII with a newline at the end: what a stranger's file holds cannot steer a terminal, and is not
/// lost. Bytes that are no UTF-8 become U+FFFD, and `##[` is written so that GitHub's runner sees no command.
std::string dumped(const Json& json, Format format = Format::json);

/// An object with room for so many members: one that grows copies all that it has.
inline Json with_room(std::size_t members, Json out = Json::object()) {
  out.get_ref<Json::object_t&>().reserve(members);
  return out;
}

/// A value as JSON: null for what is empty or not known. A struct of ours is what its to_json() makes of it:
/// a specialization.
template <class T>
Json json_of(const T& value) {
  if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::vector<std::string>>) {
    return value;
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    const std::string_view text = value;
    return text.empty() ? Json(nullptr) : Json(text);
  } else if constexpr (requires { value.has_value(); }) {
    return value ? json_of(*value) : Json(nullptr);
  } else if constexpr (std::is_same_v<T, image::Version>) {
    return value.known() ? Json(image::to_name(value).view()) : Json(nullptr);
  } else if constexpr (std::is_same_v<T, image::ComputeCapability>) {
    return image::to_name(value).view();
  } else if constexpr (std::is_same_v<T, image::Arch>) {
    return image::to_name(image::ImageKind::cubin, value).view();
  } else if constexpr (requires { value.begin(); }) {
    Json out = Json::array();
    for (const auto& item : value) out.push_back(json_of(item));
    return out;
  } else {
    return to_json(value);
  }
}
template <class Items, class Make>
Json json_list(const Items& items, Make&& make) {
  Json out = Json::array();
  out.get_ref<Json::array_t&>().reserve(items.size());
  for (const auto& item : items) out.push_back(make(item));
  return out;
}

// Members of `from` that are called as in the JSON, into `out`; and a struct whose members all are.
#define KSHIM_JSON_FIELD(field) out[#field] = ::kshim::render::json_of(from.field);
#define KSHIM_JSON_FIELDS(...) NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(KSHIM_JSON_FIELD, __VA_ARGS__))
#define KSHIM_JSON(Type, ...)             \
  template <>                             \
  inline Json to_json(const Type& from) { \
    Json out = with_room(16);             \
    KSHIM_JSON_FIELDS(__VA_ARGS__)        \
    return out;                           \
  }

/// `knowledge` and `knowledge_files`: the tables that the answer is by. Last in every JSON.
void add_knowledge(Json& out);

}  // namespace kshim::render
