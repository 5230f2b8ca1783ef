// SPDX-License-Identifier: Apache-2.0
// How a piece of text is meant. A terminal shows it by color, Markdown and HTML by markup.
#pragma once
#include <cstdint>

namespace kshim::analysis {

/// code: names of files, kernels, calls. number: a cell of digits.
enum class Tone : std::uint8_t { plain, strong, dim, error, warning, good, code, number };

}  // namespace kshim::analysis
