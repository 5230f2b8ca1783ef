// SPDX-License-Identifier: Apache-2.0
// Optimized copies of the small functions that everything calls. Of the copies of an inline function the
// linker takes that of the first object: without this one it would be that of a test, which
// kshim_not_optimized() compiles without optimization, in the libraries' code too.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kshim/base/bytes.h"

template class std::basic_string<char>;
template class std::basic_string_view<char>;
template class std::span<const std::byte>;
template class std::vector<std::string>;

namespace kshim {
template Result<std::uint8_t> read_le<std::uint8_t>(Bytes, std::uint64_t) noexcept;
template Result<std::uint16_t> read_le<std::uint16_t>(Bytes, std::uint64_t) noexcept;
template Result<std::uint32_t> read_le<std::uint32_t>(Bytes, std::uint64_t) noexcept;
template Result<std::uint64_t> read_le<std::uint64_t>(Bytes, std::uint64_t) noexcept;
}  // namespace kshim
