// SPDX-License-Identifier: Apache-2.0
// The simulator compiles nothing. It refuses PTX that no compiler could take: text that is cut off, or whose
// brackets do not match. Everything else passes; docs/simulator.md says so.
#pragma once
#include <cstddef>
#include <string_view>

namespace kshim::sim {

/// The line, counted from 1, of the first bracket that does not match, or of the end of a text that is cut
/// off; 0 when all is well.
std::size_t first_bad_line(std::string_view ptx);

}  // namespace kshim::sim
