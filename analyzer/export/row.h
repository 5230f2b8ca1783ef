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
enum class Slot : char { id = 1, time, next };
/// The values, as JSON; the id without its quotes.
struct RowPlaces {
  std::string_view id;
  std::string time;
  /// Adds `lines` to `out`. `next()`: the JSON of the next value of a row's own.
  template <class Next>
  void fill(std::string_view lines, std::span<const std::uint32_t> places, std::string& out,
            Next&& next) const {
    std::size_t begin = 0;
    for (const std::uint32_t at : places) {
      out += lines.substr(begin, at - begin);
      const auto place = static_cast<Slot>(lines[at]);
      if (place == Slot::next)
        out += next();
      else
        out += place == Slot::id ? id : std::string_view(time);
      begin = at + 1;
    }
    out += lines.substr(begin);
  }
};
/// Where they are.
std::vector<std::uint32_t> places_in(std::string_view lines);

/// A value of a row, as JSON in a text of the thread.
struct Cell {
  std::uint8_t column = 0;  ///< of all tables
  std::uint32_t begin = 0, end = 0;
};

/// `table::column(value)` is a cell. Empty is null, and so is what is not known: an empty text, an integer
/// that no engine's column holds.
class Column {
 public:
  explicit constexpr Column(std::uint8_t number) : number_(number) {}
  Cell operator()(std::string_view value) const;
  Cell operator()(const std::vector<std::string>& values) const;
  Cell operator()(double value) const;
  template <std::integral T>
  Cell operator()(T value) const {
    if constexpr (std::is_same_v<T, bool>)
      return literal(value ? "true" : "false");
    else
      return integer(static_cast<std::uint64_t>(value));
  }
  template <class T>
  Cell operator()(const std::optional<T>& value) const {
    return value ? (*this)(*value) : Cell{number_};
  }
  /// A value that differs between reports; `suffix`: what comes after the id.
  Cell operator()(Slot place, std::string_view suffix = {}) const;

 private:
  Cell integer(std::uint64_t value) const;
  Cell literal(std::string_view json) const;
  std::uint8_t number_;
};

enum class ColumnNumber : std::uint8_t {
#define KSHIM_TABLE(table, meaning)
#define KSHIM_COLUMN(table, column, type, meaning) table##_##column,
#include "analyzer/export/facts.def"
#undef KSHIM_TABLE
#undef KSHIM_COLUMN
};
#define KSHIM_TABLE(table, meaning)
#define KSHIM_COLUMN(table, column, type, meaning)                                           \
  namespace table {                                                                          \
  inline constexpr Column column(static_cast<std::uint8_t>(ColumnNumber::table##_##column)); \
  }
#include "analyzer/export/facts.def"
#undef KSHIM_TABLE
#undef KSHIM_COLUMN

/// A thread makes the cells of one at a time.
class Row {
 public:
  /// All of one table.
  template <class... Cells>
  explicit Row(const Cell& first, const Cells&... others) : Row({first, others...}) {}
  Table table() const noexcept { return table_; }
  /// Adds the line with its newline; ASCII without control characters but those that stand for places.
  void add_to(std::string& out) const;

 private:
  explicit Row(std::initializer_list<Cell> cells);
  Table table_;
  std::array<Cell, 32> cells_ = {};  ///< by column of the table; empty is null
};

}  // namespace kshim::exports
