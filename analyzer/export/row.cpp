// SPDX-License-Identifier: Apache-2.0
#include "analyzer/export/row.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace kshim::exports {
namespace {

struct ColumnName {
  Table table;
  std::string_view key;
};
constexpr std::array kColumns = {
#define KSHIM_TABLE(table, meaning)
#define KSHIM_COLUMN(table, column, type, meaning) ColumnName{Table::table, "\"" #column "\":"},
#include "analyzer/export/facts.def"
#undef KSHIM_TABLE
#undef KSHIM_COLUMN
};

/// The columns of a table stand together: the first, and the one after the last.
constexpr auto kRanges = [] {
  std::array<std::pair<std::size_t, std::size_t>, kTableNames.size()> out{};
  for (std::size_t at = 0; at < kColumns.size(); ++at) {
    auto& [first, end] = out[static_cast<std::size_t>(kColumns[at].table)];
    if (end == 0) first = at;
    end = at + 1;
  }
  return out;
}();
static_assert(std::all_of(kRanges.begin(), kRanges.end(),
                          [](const auto& range) { return range.second - range.first <= 32; }));

void add_json(std::string_view text, std::string& out) {
  bool odd = false;
  for (const char c : text) odd = odd | (c < ' ') | (c > '~') | (c == '"') | (c == '\\');  // of many at once
  if (odd) {
    out += nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    return;
  }
  out += '"';
  out += text;
  out += '"';
}

thread_local std::string g_cells;

/// Runs `write`, which adds the value's JSON to g_cells.
template <class Write>
Cell cell(std::uint8_t column, Write&& write) {
  const auto begin = static_cast<std::uint32_t>(g_cells.size());
  write();
  return {column, begin, static_cast<std::uint32_t>(g_cells.size())};
}

}  // namespace

std::string to_json(std::string_view text) {
  std::string out;
  if (text.empty()) return "null";
  add_json(text, out);
  return out;
}

std::string to_json(double number) { return nlohmann::json(number).dump(); }

std::vector<std::uint32_t> places_in(std::string_view lines) {
  std::vector<std::uint32_t> out;
  for (std::size_t at = 0; at < lines.size(); ++at)
    if (lines[at] > 0 && lines[at] <= static_cast<char>(Slot::next))
      out.push_back(static_cast<std::uint32_t>(at));
  out.shrink_to_fit();
  return out;
}

Cell Column::operator()(std::string_view value) const {
  return value.empty() ? Cell{number_} : cell(number_, [&] { add_json(value, g_cells); });
}

Cell Column::operator()(const std::vector<std::string>& values) const {
  return cell(number_, [&] {
    g_cells += '[';
    for (const std::string& value : values) {
      if (&value != values.data()) g_cells += ',';
      add_json(value, g_cells);
    }
    g_cells += ']';
  });
}

Cell Column::operator()(double value) const { return literal(to_json(value)); }

Cell Column::integer(std::uint64_t value) const {
  if (value > std::numeric_limits<std::int64_t>::max()) return {number_};
  const fmt::format_int text(value);
  return literal({text.data(), text.size()});
}

Cell Column::operator()(Slot place, std::string_view suffix) const {
  return cell(number_, [&] {
    const std::size_t quote = g_cells.size();
    if (place == Slot::id) add_json(suffix, g_cells);
    g_cells.insert(place == Slot::id ? quote + 1 : quote, 1, static_cast<char>(place));
  });
}

Cell Column::literal(std::string_view json) const {
  return cell(number_, [&] { g_cells += json; });
}

Row::Row(std::initializer_list<Cell> cells) : table_(kColumns[cells.begin()->column].table) {
  const std::size_t first = kRanges[static_cast<std::size_t>(table_)].first;
  for (const Cell& cell : cells) cells_.at(cell.column - first) = cell;
}

void Row::add_to(std::string& out) const {
  const auto [first, end] = kRanges[static_cast<std::size_t>(table_)];
  for (std::size_t at = first; at < end; ++at) {
    const Cell& cell = cells_[at - first];
    out += at == first ? '{' : ',';
    out += kColumns[at].key;
    if (cell.end == 0)
      out += "null";
    else
      out.append(g_cells, cell.begin, cell.end - cell.begin);
  }
  out += "}\n";
  g_cells.clear();
}

}  // namespace kshim::exports
