// SPDX-License-Identifier: Apache-2.0
// The simulator does not compile. It rejects PTX that no compiler accepts: truncated text, and text with
// unmatched brackets. Everything else is accepted (docs/internals/simulator.md).
#pragma once
#include <cstddef>
#include <string_view>

namespace kshim::sim {

/// The line, counted from 1, of the first bracket that does not match, or of the end of a text that is cut
/// off; 0 when all is well.
std::size_t first_bad_line(std::string_view ptx);

}  // namespace kshim::sim
