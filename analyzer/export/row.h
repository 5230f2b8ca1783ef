// SPDX-License-Identifier: Apache-2.0
// One row of a table of kshim-facts/1 as a line of JSON. Columns that nothing was put into are null.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

class Row {
 public:
  explicit Row(Table table);
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

  /// With a newline at its end; pure ASCII.
  std::string line() const;

 private:
  std::string& at(Column column);
  Table table_;
  std::size_t first_;
  std::vector<std::string> values_;  ///< JSON, by column; empty is null
};

}  // namespace kshim::exports
