// SPDX-License-Identifier: Apache-2.0
#include "boot/handshake.h"

#include <cstring>
#include <vector>

#include "boot/md2.h"
#include "device/product.h"

namespace kshim::sim {
namespace {

constexpr std::array<std::uint8_t, 16> kKey = {0x14, 0x6a, 0xdd, 0xae, 0x53, 0xa9, 0xa7, 0x52,
                                               0xaa, 0x08, 0x41, 0x36, 0x0b, 0xf5, 0x5a, 0x9f};
constexpr std::uint64_t kFirstOfZero = 0x3341181C03CB675CULL;
constexpr std::uint64_t kFirstOfOne = 0x1841181C03CB675CULL;
constexpr std::uint64_t kSecond = 0x8ED383AA1F4CD1E8ULL;

/// Fields in native layout, one behind the other without padding.
class Message {
 public:
  template <class T>
  void put(const T& value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof value);
  }
  std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace

std::array<std::uint64_t, 2> answer_handshake(std::uint32_t runtime_version, std::uint64_t unix_seconds,
                                              const HandshakeProcess& process,
                                              std::span<const Device> devices) noexcept {
  // The last digit of the version selects the question; two of them have a constant answer.
  switch (runtime_version % 10) {
    case 0:
      return {kFirstOfZero, kSecond};
    case 1:
      return {kFirstOfOne, kSecond};
    default:
      break;
  }
  Message message;
  message.put(process.driver_version);
  message.put(runtime_version);
  message.put(process.pid);
  message.put(process.thread);
  message.put(process.cudart_table);
  message.put(process.integrity_table);
  message.put(process.integrity_function);
  message.put(unix_seconds);
  for (const Device& device : devices) {
    message.put(device.uuid);
    message.put(std::int32_t{device.pci_domain});
    message.put(std::int32_t{device.pci_bus});
    message.put(std::int32_t{device.pci_device});
  }
  const Md2Digest digest = hmac_md2(kKey, message.bytes());
  std::array<std::uint64_t, 2> answer;
  static_assert(sizeof answer == sizeof digest);
  std::memcpy(answer.data(), digest.data(), sizeof answer);
  return answer;
}

}  // namespace kshim::sim
