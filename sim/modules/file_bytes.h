// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

namespace kshim::sim {

/// All bytes of a file. Nothing if it cannot be read: it does not exist, is a folder, or a read fails.
std::optional<std::vector<std::byte>> file_bytes(const char* path);

}  // namespace kshim::sim
