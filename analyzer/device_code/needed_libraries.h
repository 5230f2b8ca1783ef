// SPDX-License-Identifier: Apache-2.0
// What a program or library lists as needed (DT_NEEDED), read from the file.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace kshim::analysis {

/// Empty for a file that is not there, is another one by build id, or is no ELF file.
std::vector<std::string> needed_libraries(const std::string& path, std::string_view build_id);

}  // namespace kshim::analysis
