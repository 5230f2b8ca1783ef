// SPDX-License-Identifier: Apache-2.0
#include "guest/program_path.h"

#include <elf.h>

#include <cstdint>

#include "guest/auxiliary_vector.h"
#include "guest/own_file.h"
#include "guest/syscalls.h"

namespace kshim::shim {
namespace {

/// Reads /proc/self/maps: "7f12a000-7f12c000 r--p 00000000 fe:01 1234    /path".
class MappedFile {
 public:
  MappedFile(std::uintptr_t address, char* to, std::size_t room) noexcept
      : address_(address), to_(to), room_(room) {}
  /// False at the end of the line that has the address.
  bool take(char character) noexcept {
    if (character == '\n') {
      if (low_ <= address_ && address_ < high_) return false;
      low_ = high_ = 0;
      size_ = 0;
      field_ = 0;
    } else if (field_ < 2) {
      take_address(character);
    } else if (field_ < kPath) {
      field_ += character == ' ' ? 1 : 0;
    } else if ((size_ != 0 || character == '/') && size_ < room_) {
      to_[size_++] = character;
    }
    return true;
  }
  std::size_t size() const noexcept { return size_; }

 private:
  static constexpr int kPath = 6;
  void take_address(char character) noexcept {
    std::uintptr_t& value = field_ == 0 ? low_ : high_;
    if (character >= '0' && character <= '9')
      value = value << 4U | static_cast<std::uintptr_t>(character - '0');
    else if (character >= 'a' && character <= 'f')
      value = value << 4U | static_cast<std::uintptr_t>(character - 'a' + 10);
    else
      ++field_;
  }

  std::uintptr_t address_;
  char* to_;
  std::size_t room_;
  std::uintptr_t low_ = 0;
  std::uintptr_t high_ = 0;
  std::size_t size_ = 0;
  int field_ = 0;
};

std::size_t read_mapped_file(std::uintptr_t address, char* to, std::size_t room) noexcept {
  const OwnFile file(raw::open_file("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC));
  MappedFile found(address, to, room);
  char text[2048];
  std::uint64_t offset = 0;
  while (const std::size_t got = file.read(offset, text, sizeof text)) {
    for (std::size_t i = 0; i < got; ++i)
      if (!found.take(text[i])) return found.size();
    offset += got;
  }
  return 0;
}

}  // namespace

std::size_t read_program_path(char* to, std::size_t room) noexcept {
  // The kernel says where it mapped the linker only if another file names it. The linker then sets AT_PHDR.
  const std::uintptr_t headers = auxiliary_value(AT_PHDR);
  const std::size_t mapped =
      headers != 0 && auxiliary_value(AT_BASE) == 0 ? read_mapped_file(headers, to, room) : 0;
  if (mapped != 0) return mapped;
  const ssize_t size = raw::read_link("/proc/self/exe", to, room);
  return size <= 0 ? 0 : static_cast<std::size_t>(size);
}

}  // namespace kshim::shim
