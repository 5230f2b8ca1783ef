// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

namespace kshim::analysis {

/// What a file that is no report is, by its first bytes, as a clause with what to do: "is compressed with
/// gzip: ...". Empty where nothing is known about it.
std::string foreign_file(std::string_view first_bytes);

}  // namespace kshim::analysis
