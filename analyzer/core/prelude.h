// SPDX-License-Identifier: Apache-2.0
// What every file of the command may use: the standard headers that are precompiled for it
// (cmake/KshimPrecompiled.cmake), fmt, and the vocabulary of core/.
#pragma once
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>
