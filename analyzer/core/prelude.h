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

// A folder is a namespace, and uses the names of the folders below it (tests/lint/layers.py has the order).
namespace kshim {
namespace core {}
namespace data {
using namespace core;
}
namespace device_code {
using namespace data;
}
namespace owner {
using namespace device_code;
}
namespace input {
using namespace owner;
}
namespace diagnose {
using namespace input;
}
namespace say {
using namespace diagnose;
}
namespace advise {
using namespace say;
}
namespace verbs {
using namespace advise;
}
namespace run {
using namespace verbs;
}
namespace render {
using namespace run;
}
namespace compare {
using namespace render;
}
namespace cli {
using namespace compare;
}
namespace test {
using namespace cli;
}
}  // namespace kshim
