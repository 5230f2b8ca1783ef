// SPDX-License-Identifier: Apache-2.0
// All device code of one file: every image by its header, grouped into the modules that a driver loads one by
// one.
#pragma once
#include <cstdint>

#include "kshim/image/image.h"
#include "kshim/image/select.h"
#include "query/array.h"
#include "query/source_file.h"

namespace kshim::query {

struct CodeImage {
  image::Candidate candidate;
  image::Compression compression = image::Compression::none;
  bool listed = false;       ///< its kernels are in the table
  std::uint64_t offset = 0;  ///< of the payload in the file
  std::uint64_t stored = 0;  ///< bytes there
  std::uint64_t clear = 0;   ///< bytes, decompressed
};

/// Whether a module has kernels. Nearly every program of nvcc's has a fatbin without any. `assumed`: nobody
/// looked (kernel_names.h, kMaxLook).
enum class Kernels : std::uint8_t { no, yes, assumed };

/// Images [first, first + count), and those that parts [first_part, first_part + part_count) name: PTX of the
/// relocatable parts that the module was linked from.
struct CodeModule {
  std::uint64_t offset = 0;  ///< of its fatbin or bare image in the file
  std::uint32_t first = 0, count = 0;
  std::uint32_t first_part = 0, part_count = 0;
  Kernels kernels = Kernels::assumed;  ///< the same for every question
  Kernels confirmed =
      Kernels::assumed;     ///< what a question saw that depends on a module that nobody looked into
  bool registered = false;  ///< a wrapper names it: the CUDA runtime loads it
  bool fragment = false;    ///< not registered where others are, and with LTO-IR: the library links it itself
};

struct DeviceCode {
  image::Packaging packaging = image::Packaging::fatbin;
  bool unknown_kind = false;  ///< some fatbin has an image of a kind that is not known
  Array<CodeImage> images;
  Array<CodeModule> modules;   ///< by offset, ascending
  Array<std::uint32_t> parts;  ///< indices of images
  std::size_t bytes() const noexcept { return images.bytes() + modules.bytes() + parts.bytes(); }
};

/// Calls visit(index into DeviceCode::images) for each image of a module, those of its parts last.
template <class Visit>
void each_image_of(const DeviceCode& code, const CodeModule& module, Visit&& visit) {
  for (std::uint32_t i = 0; i < module.count; ++i) visit(module.first + i);
  for (std::uint32_t i = 0; i < module.part_count; ++i) visit(code.parts[module.first_part + i]);
}

/// Reads an open file. Anything but Reason::none: nothing is known of the file's code.
Reason find_device_code(SourceFile& file, DeviceCode& out) noexcept;

}  // namespace kshim::query
