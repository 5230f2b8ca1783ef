// SPDX-License-Identifier: Apache-2.0
// Accessors for untrusted JSON: a member of the wrong type counts as missing.
#pragma once
#include <nlohmann/json.hpp>

#include "analyzer/core/prelude.h"

namespace kshim::core {

/// null where there is none.
inline const nlohmann::json& part_of(const nlohmann::json& json, const char* key) {
  static const nlohmann::json none;
  const auto at = json.is_object() ? json.find(key) : json.end();
  return json.is_object() && at != json.end() ? *at : none;
}
inline const nlohmann::json& list_at(const nlohmann::json& json, const char* key) {
  static const nlohmann::json empty = nlohmann::json::array();
  const nlohmann::json& value = part_of(json, key);
  return value.is_array() ? value : empty;
}
inline std::string string_at(const nlohmann::json& json, const char* key) {
  const nlohmann::json& value = part_of(json, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}
inline std::uint64_t number_at(const nlohmann::json& json, const char* key) {
  const nlohmann::json& value = part_of(json, key);
  return value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
}

}  // namespace kshim::core
