// SPDX-License-Identifier: Apache-2.0
// Names of architectures: compute capability (9.0), real target (sm_90a), virtual target (compute_90a),
// LTO-IR (lto_90), Tile IR (tile_90). Spelled as the toolkit spells them, which has no name for the last. No
// heap, no exceptions.
#pragma once
#include <array>
#include <compare>
#include <cstdint>
#include <string_view>

#include "kshim/base/result.h"

namespace kshim::image {

/// Compute capability of a device or of an image: 12.1 is {12, 1}.
struct ComputeCapability {
  std::uint16_t major = 0;
  std::uint16_t minor = 0;
  constexpr auto operator<=>(const ComputeCapability&) const = default;
  /// The decimal number in sm_NN.
  constexpr unsigned number() const noexcept { return major * 10U + minor; }
  static constexpr ComputeCapability from_number(unsigned number) noexcept {
    return {static_cast<std::uint16_t>(number / 10), static_cast<std::uint16_t>(number % 10)};
  }
};

/// PTX ISA version, or a CUDA version (13.0), which the driver reports as major * 1000 + minor * 10.
struct Version {
  std::uint16_t major = 0;
  std::uint16_t minor = 0;
  constexpr auto operator<=>(const Version&) const = default;
  constexpr bool known() const noexcept { return major != 0; }
  constexpr int cuda_number() const noexcept { return major * 1000 + minor * 10; }
  static constexpr Version from_cuda_number(int number) noexcept {
    return {static_cast<std::uint16_t>(number / 1000), static_cast<std::uint16_t>(number % 1000 / 10)};
  }
};

/// none: runs on every later minor of its major; a: on exactly this device; f: on its family (CUDA 12.9 and
/// later).
enum class Suffix : std::uint8_t { none, a, f };
enum class ImageKind : std::uint8_t { ptx, cubin, ltoir, tileir };

struct Arch {
  ComputeCapability cc;
  Suffix suffix = Suffix::none;
  constexpr auto operator<=>(const Arch&) const = default;
};

/// A short string by value: "compute_120f", "12.0". Never longer than 15 characters.
struct ShortName {
  std::array<char, 16> text{};
  constexpr std::string_view view() const noexcept { return {text.data(), size}; }
  constexpr const char* c_str() const noexcept { return text.data(); }
  std::uint8_t size = 0;
};

ShortName to_name(ImageKind kind, Arch arch) noexcept;  ///< sm_90a, compute_90a, lto_90a, tile_90
ShortName to_name(ComputeCapability cc) noexcept;       ///< 9.0
ShortName to_name(Version version) noexcept;            ///< 13.0
constexpr std::string_view to_name(ImageKind kind) noexcept {
  constexpr std::string_view kNames[] = {"ptx", "cubin", "ltoir", "tileir"};
  return kNames[static_cast<std::size_t>(kind)];
}

/// The kind of that name; Errc::malformed_text otherwise.
Result<ImageKind> parse_kind(std::string_view name) noexcept;

/// Reads what people and tools write: "sm_90a", "compute_90a", "lto_90", "90a", "9.0", "9.0a", "sm90".
/// Errc::malformed_text otherwise. It does not judge whether such a GPU exists: see compute_capability.def.
Result<Arch> parse_arch(std::string_view text) noexcept;
/// "13.0" or "13". Errc::malformed_text otherwise.
Result<Version> parse_version(std::string_view text) noexcept;

}  // namespace kshim::image
