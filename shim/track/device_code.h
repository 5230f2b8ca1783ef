// SPDX-License-Identifier: Apache-2.0
// What a load hands to the driver: which file it lies in, and for which architectures it has images. Entry
// headers are read, payloads never.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "kshim/image/select.h"
#include "process/loaded_objects.h"

namespace kshim::shim {

/// "sm_90a", "compute_75" ...: the images of a module as the records list them.
struct ArchList {
  static constexpr std::size_t kMax = 32;
  image::ShortName names[kMax];
  std::string_view views[kMax];
  std::size_t count = 0;
  std::span<const std::string_view> all() const noexcept { return {views, count}; }
};

struct KernelNames;

struct DeviceCode {
  static constexpr std::size_t kMaxImages = 24;

  std::uintptr_t address = 0;  ///< of the fatbin or image itself, behind any wrapper; 0 for a file
  std::uint64_t size = 0;      ///< bytes; 0 where unknown
  std::uint32_t object = 0;    ///< identity of the file it lies in; 0 = a loose blob
  std::uint64_t offset = 0;    ///< link-time address within that file
  std::uint64_t hash = 0;      ///< of a loose blob; 0 = not taken
  bool wrapped = false;        ///< through a fatbin wrapper, as the runtime does
  image::Packaging packaging = image::Packaging::loose;
  image::Version toolkit;  ///< that made a bare cubin; unknown for what a file holds, which the command reads
  std::uint8_t image_count = 0;  ///< distinct ones
  image::Candidate images[kMaxImages];

  std::span<const image::Candidate> candidates() const noexcept { return {images, image_count}; }
  void list(ArchList& out) const noexcept;
};

/// Bytes of a loose blob up to which a successful load is hashed; a failed one is hashed whatever its size.
constexpr std::uint64_t kCheapHash = 16384;

/// `image`: what the load function was given. Only `address` is set where it cannot be read.
void examine_memory(std::uintptr_t image, bool failed, DeviceCode& out) noexcept;
/// The kernels of a cubin or PTX text that lies in no file, while it is being loaded: later the memory may be
/// something else.
void loose_kernels(const DeviceCode& code, KernelNames& out) noexcept;
/// `path`: what the load function was given. An object of its own, although nothing maps it.
void examine_file(const char* path, DeviceCode& out) noexcept;

}  // namespace kshim::shim
