// SPDX-License-Identifier: Apache-2.0
// The check by which the runtime verifies a driver before it uses it. Layout and key are public:
// docs/internals/simulator.md, "The handshake".
#pragma once
#include <array>
#include <cstdint>
#include <span>

namespace kshim::sim {

struct Device;

/// The process-dependent part of the question.
struct HandshakeProcess {
  std::uint32_t driver_version;  ///< as cuDriverGetVersion says
  std::uint32_t pid;
  std::uint32_t thread;  ///< low half of pthread_self()
  const void* cudart_table;
  const void* integrity_table;
  const void* integrity_function;  ///< slot 1 of the latter
};

std::array<std::uint64_t, 2> answer_handshake(std::uint32_t runtime_version, std::uint64_t unix_seconds,
                                              const HandshakeProcess& process,
                                              std::span<const Device> devices) noexcept;

}  // namespace kshim::sim
