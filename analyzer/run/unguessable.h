// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace kshim::cli {

/// Twelve hexadecimal digits, which only who is told them knows; empty where the system has nothing random.
std::string unguessable_name();

}  // namespace kshim::cli
