// SPDX-License-Identifier: Apache-2.0
// One row of a table of kshim-facts/1 as a line of JSON. Columns that nothing was put into are null.
#pragma once
#include <cstddef>

#include "analyzer/core/prelude.h"

namespace kshim::exports {

enum class Table : std::uint8_t {
#define KSHIM_TABLE(table, meaning) table,
#define KSHIM_COLUMN(table, column, type, meaning)
#include "analyzer/export/facts.def"
#undef KSHIM_TABLE
#undef KSHIM_COLUMN
};

enum class Column : std::uint8_t {
#define KSHIM_TABLE(table, meaning)
#define KSHIM_COLUMN(table, column, type, meaning) table##_##column,
#include "analyzer/export/facts.def"
#undef KSHIM_TABLE
#undef KSHIM_COLUMN
};

inline constexpr std::array kTableNames = {
#define KSHIM_TABLE(table, meaning) std::string_view(#table),
#define KSHIM_COLUMN(table, column, type, meaning)
#include "analyzer/export/facts.def"
#undef KSHIM_TABLE
#undef KSHIM_COLUMN
};

/// An empty text is not known: null.
std::string to_json(std::string_view text);
std::string to_json(double number);

/// Stand for values in lines of rows. JSON has no such characters.
enum class Place : char { id = 1, time, next };
/// The values, as JSON; the id without its quotes.
struct RowPlaces {
  std::string_view id;
  std::string time;
  /// Adds `lines` to `out`. `next()`: the JSON of the next value of a row's own.
  template <class Next>
  void fill(std::string_view lines, std::string& out, Next&& next) const {
    const auto is_place = [](char c) { return c > 0 && c <= static_cast<char>(Place::next); };
    for (;;) {
      const auto at = static_cast<std::size_t>(std::ranges::find_if(lines, is_place) - lines.begin());
      out += lines.substr(0, at);
      if (at == lines.size()) return;
      const auto place = static_cast<Place>(lines[at]);
      if (place == Place::next)
        out += next();
      else
        out += place == Place::id ? id : std::string_view(time);
      lines.remove_prefix(at + 1);
    }
  }
};

/// A thread makes one at a time.
class Row {
 public:
  explicit Row(Table table) : table_(table) { text_.clear(); }
  Table table() const noexcept { return table_; }

  /// An empty text is not known: null.
  Row& text(Column column, std::string_view value);
  Row& texts(Column column, const std::vector<std::string>& values);
  Row& integer(Column column, std::uint64_t value);
  Row& number(Column column, double value);
  Row& boolean(Column column, bool value);
  template <class Integer>
  Row& integer(Column column, const std::optional<Integer>& value) {
    return value ? integer(column, static_cast<std::uint64_t>(*value)) : *this;
  }

  /// Places for values that differ between reports: of the process its id, before `suffix`, and its time; the
  /// next of the row's own.
  Row& id(Column column, std::string_view suffix = {});
  Row& time(Column column);
  Row& next(Column column);

  /// Adds the line with its newline; ASCII without control characters but those that stand for places.
  void add_to(std::string& out) const;

 private:
  struct Value {
    std::uint32_t begin = 0, end = 0;
  };
  /// Runs `write`, which adds the value's JSON to `text_`.
  template <class Write>
  Row& put(Column column, Write&& write);
  Table table_;
  static thread_local std::string text_;  ///< the values, in the order in which they came
  std::array<Value, 32> values_ = {};     ///< in `text_`, by column of the table; empty is null
};

}  // namespace kshim::exports
