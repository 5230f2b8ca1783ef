// SPDX-License-Identifier: Apache-2.0
// Examines device code that is loaded: which file it lies in, and for which architectures it has images. Only
// headers are read, no payloads.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "cuda/call_args.h"
#include "kshim/image/image.h"
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
  /// Hash of what tells images apart: headers, tables, samples. 0 = constant data of a file.
  std::uint64_t sample = 0;
  /// For the report: the sample, or the hash of all bytes (hash_in_full()).
  std::uint64_t hash = 0;
  bool wrapped = false;                             ///< through a fatbin wrapper, as the runtime does
  image::BlobKind kind = image::BlobKind::unknown;  ///< of what lies in memory
  image::Packaging packaging = image::Packaging::loose;
  image::Version toolkit;  ///< that made a bare cubin; unknown for what a file holds, which the command reads
  std::uint8_t image_count = 0;  ///< distinct ones
  image::Candidate images[kMaxImages];

  /// It lies in memory of no file, or in data of a file that the program writes to.
  bool is_loose() const noexcept { return sample != 0; }
  std::span<const image::Candidate> candidates() const noexcept { return {images, image_count}; }
  void list(ArchList& out) const noexcept;
  /// The image that the driver would select for a device.
  image::Selection selection_for(const image::Platform& platform) const noexcept {
    return select_image(candidates(), platform, packaging);
  }
  /// Equal for equal code: derived from file, offset and content, because a program may use one buffer for
  /// several images.
  std::uint64_t key() const noexcept;
};

/// Bytes of an image up to which all of it is hashed; of a larger one a sample, unless it is recorded as
/// failed.
constexpr std::uint64_t kHashedInFull = 16384;

/// The outcome of a load. `refused`: the driver answered before it looked at the image (no context, for one).
/// The image may not be there yet, in memory that a server or a file system fills when it is touched: it is
/// not read, unless it lies in a library.
enum class LoadResult : std::uint8_t { loaded, failed, refused };
LoadResult load_result(int code) noexcept;

/// The code of a load that has returned: of memory or of a file. Without the shim's lock, since a file's
/// server may not answer.
void examine(const CallArgs& facts, DeviceCode& out) noexcept;
/// `image`: the argument of the load function. Only `address` is set if the image cannot be read.
void examine_memory(std::uintptr_t image, LoadResult result, DeviceCode& out) noexcept;

// These read all of an image that lies in no file, which may take long: without the shim's lock, and while
// the image is being loaded. Afterwards the program may reuse the memory.

/// Its bytes, as far as they can be read.
Bytes loose_bytes(const DeviceCode& code) noexcept;
/// Makes `hash` that of all bytes.
void hash_in_full(DeviceCode& code) noexcept;
/// The kernels of a cubin or PTX text.
void loose_kernels(const DeviceCode& code, KernelNames& out) noexcept;

/// `path`: the argument of the load function. The file gets an identity although it is not mapped. If the
/// load succeeded, only the first bytes of a cubin or PTX are read.
void examine_file(const char* path, LoadResult result, DeviceCode& out) noexcept;

}  // namespace kshim::shim
