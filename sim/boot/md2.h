// SPDX-License-Identifier: Apache-2.0
// MD2 (RFC 1319) and HMAC (RFC 2104) over it. Only the runtime's handshake uses it: MD2 protects nothing
// today.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace kshim::sim {

using Md2Digest = std::array<std::uint8_t, 16>;

class Md2 {
 public:
  void update(std::span<const std::byte> data) noexcept;
  Md2Digest finish() noexcept;

 private:
  void block(const std::uint8_t* data) noexcept;
  std::array<std::uint8_t, 48> state_{};
  std::array<std::uint8_t, 16> checksum_{};
  std::array<std::uint8_t, 16> pending_{};
  std::size_t pending_size_ = 0;
};

/// HMAC with a key of one block (16 bytes).
Md2Digest hmac_md2(const std::array<std::uint8_t, 16>& key, std::span<const std::byte> message) noexcept;

}  // namespace kshim::sim
