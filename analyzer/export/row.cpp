// SPDX-License-Identifier: Apache-2.0
#include "analyzer/export/row.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace kshim::exports {
namespace {

struct ColumnName {
  Table table;
  std::string_view name;
};
constexpr std::array kColumns = {
#define KSHIM_TABLE(table, meaning)
#define KSHIM_COLUMN(table, column, type, meaning) ColumnName{Table::table, #column},
#include "analyzer/export/facts.def"
#undef KSHIM_TABLE
#undef KSHIM_COLUMN
};

std::size_t first_of(Table table) {
  std::size_t at = 0;
  while (kColumns[at].table != table) ++at;
  return at;
}

std::size_t count_of(Table table) {
  std::size_t count = 0;
  for (const ColumnName& column : kColumns) count += column.table == table ? 1 : 0;
  return count;
}

std::string json_text(std::string_view text) {
  const bool plain = std::all_of(text.begin(), text.end(),
                                 [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
  if (plain) return fmt::format("\"{}\"", text);
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

}  // namespace

Row::Row(Table table) : table_(table), first_(first_of(table)), values_(count_of(table)) {}

std::string& Row::at(Column column) { return values_.at(static_cast<std::size_t>(column) - first_); }

Row& Row::text(Column column, std::string_view value) {
  if (!value.empty()) at(column) = json_text(value);
  return *this;
}

Row& Row::texts(Column column, const std::vector<std::string>& values) {
  std::string& out = at(column);
  out = "[";
  for (const std::string& value : values) out += (out.size() > 1 ? "," : "") + json_text(value);
  out += ']';
  return *this;
}

Row& Row::integer(Column column, std::uint64_t value) {
  at(column) = fmt::format("{}", value);
  return *this;
}

Row& Row::number(Column column, double value) {
  at(column) = nlohmann::json(value).dump();
  return *this;
}

Row& Row::boolean(Column column, bool value) {
  at(column) = value ? "true" : "false";
  return *this;
}

std::string Row::line() const {
  std::string out;
  for (std::size_t index = 0; index < values_.size(); ++index) {
    out += out.empty() ? "{\"" : ",\"";
    out += kColumns[first_ + index].name;
    out += "\":";
    out += values_[index].empty() ? "null" : values_[index];
  }
  out += "}\n";
  return out;
}

}  // namespace kshim::exports
