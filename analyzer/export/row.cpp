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

}  // namespace

std::string to_json(std::string_view text) {
  std::string out;
  if (text.empty()) return "null";
  add_json(text, out);
  return out;
}

std::string to_json(double number) { return nlohmann::json(number).dump(); }

thread_local std::string Row::text_;

template <class Write>
Row& Row::put(Column column, Write&& write) {
  Value& value =
      values_.at(static_cast<std::size_t>(column) - kRanges[static_cast<std::size_t>(table_)].first);
  value.begin = static_cast<std::uint32_t>(text_.size());
  write();
  value.end = static_cast<std::uint32_t>(text_.size());
  return *this;
}

Row& Row::text(Column column, std::string_view value) {
  if (value.empty()) return *this;
  return put(column, [&] { add_json(value, text_); });
}

Row& Row::texts(Column column, const std::vector<std::string>& values) {
  return put(column, [&] {
    text_ += '[';
    for (const std::string& value : values) {
      if (&value != values.data()) text_ += ',';
      add_json(value, text_);
    }
    text_ += ']';
  });
}

Row& Row::integer(Column column, std::uint64_t value) {
  if (value > std::numeric_limits<std::int64_t>::max()) return *this;  // no engine's column holds it
  return put(column, [&] {
    const fmt::format_int text(value);
    text_.append(text.data(), text.size());
  });
}

Row& Row::number(Column column, double value) {
  return put(column, [&] { text_ += to_json(value); });
}

Row& Row::boolean(Column column, bool value) {
  return put(column, [&] { text_ += value ? "true" : "false"; });
}

Row& Row::id(Column column, std::string_view suffix) {
  return put(column, [&] {
    const std::size_t quote = text_.size();
    add_json(suffix, text_);
    text_.insert(quote + 1, 1, static_cast<char>(Place::id));
  });
}

Row& Row::time(Column column) {
  return put(column, [&] { text_ += static_cast<char>(Place::time); });
}

Row& Row::next(Column column) {
  return put(column, [&] { text_ += static_cast<char>(Place::next); });
}

void Row::add_to(std::string& out) const {
  const auto [first, end] = kRanges[static_cast<std::size_t>(table_)];
  for (std::size_t at = first; at < end; ++at) {
    const Value& value = values_[at - first];
    out += at == first ? '{' : ',';
    out += kColumns[at].key;
    if (value.end == 0)
      out += "null";
    else
      out.append(text_, value.begin, value.end - value.begin);
  }
  out += "}\n";
}

}  // namespace kshim::exports
