// SPDX-License-Identifier: Apache-2.0
// Names of files in a column: cut to its width so that they still tell one from the other.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace kshim::analysis {

/// Columns that a terminal takes for a UTF-8 text: two for East Asian wide characters and emoji, none for
/// combining marks.
std::size_t terminal_columns(std::string_view text);

/// Each name in at most `width` columns (16 or more). What is left out is the start, then what follows the
/// part in which names differ: "...cupy/cuda/cufft...so".
std::vector<std::string> name_cells(const std::vector<std::string>& names, std::size_t width);

}  // namespace kshim::analysis
