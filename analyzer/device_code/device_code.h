// SPDX-License-Identifier: Apache-2.0
// All device code of one file in memory: every image, by its header alone, grouped into the modules that a
// driver sees. Payloads are not touched: of a library of 700 MB a few hundred pages are read.
#pragma once

#include "analyzer/core/prelude.h"
#include "kshim/image/image.h"
#include "kshim/image/select.h"

namespace kshim::device_code {

/// One image. A view into the file's bytes.
struct CodeImage {
  image::Candidate candidate;
  image::Compression compression = image::Compression::none;
  bool debug = false;
  bool relocatable = false;  ///< part of relocatable device code: its cubins are for the linker
  std::uint64_t flags = 0;   ///< of the fatbin entry, as found
  std::uint64_t offset = 0;  ///< of the entry (or bare image) in the file, bytes
  std::uint64_t bytes = 0;   ///< uncompressed
  bool left_packed = false;  ///< made to take time: not to be unpacked
  Bytes payload;             ///< as stored
};

/// What a driver loads as one: images [first, first + count) of DeviceCode::images, and, for a program of
/// relocatable device code, the PTX of its parts, which are images of other fatbins.
struct CodeModule {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint64_t offset = 0;          ///< of its fatbin (or bare image) in the file, bytes
  std::vector<std::uint32_t> parts;  ///< indices of relocatable images that belong to it
  std::uint32_t damage = 0;          ///< the first thing wrong with it: 1 + index into DeviceCode::damage
  bool embedded = false;             ///< among other data: the program loads it itself
  /// The CUDA runtime loads it, and nobody links its LTO-IR. Not looked for in files without LTO-IR.
  bool registered = false;
};

/// Calls visit(index into DeviceCode::images) for each image of a module, those of its parts last.
template <class Visit>
void each_image_of(const CodeModule& module, Visit&& visit) {
  for (std::uint32_t i = 0; i < module.count; ++i) visit(module.first + i);
  for (const std::uint32_t part : module.parts) visit(part);
}

/// Something in the file that is not as it should be; the rest was read all the same.
struct Damage {
  enum class Of : std::uint8_t {
    device_code,
    host,          ///< of the file around device code, which may hold none
    unknown_kind,  ///< an image whose kind is not known: nothing is wrong with it, but it is not judged
  };
  std::uint64_t offset = 0;  ///< in the file, bytes
  std::string what;          ///< a clause: "the fatbin ends before its last entry"
  Of of = Of::device_code;
};

enum class HostFormat : std::uint8_t { none, elf, pe };  ///< none: a bare fatbin, cubin, PTX or LTO-IR

struct DeviceCode {
  HostFormat host = HostFormat::none;
  std::string machine;   ///< of the host file: "x86-64", "aarch64"; empty for bare images
  std::string build_id;  ///< hexadecimal; empty where the file has none
  std::uint64_t fatbins = 0;
  std::vector<CodeImage> images;
  std::vector<CodeModule> modules;  ///< by offset, ascending
  std::vector<Damage> damage;
  std::uint64_t searched = 0;  ///< bytes that were looked through for device code outside of its own sections
};

/// Reads an ELF or PE file, a fatbin, a wrapper, a cubin, PTX or LTO-IR. Anything else has no images and no
/// damage.
DeviceCode find_device_code(Bytes file);

/// Every fatbin, cubin and PTX that lies in a file of any other kind, wherever it begins.
DeviceCode search_device_code(Bytes file);

/// Where an ELF file ends by its own headers, and whatever was appended begins; file.size() for anything
/// else.
std::uint64_t end_of_elf(Bytes file);

/// Which of DeviceCode::modules begins at an offset of the file.
std::optional<std::size_t> find_module(const DeviceCode& code, std::uint64_t offset);

/// The fatbin, cubin, PTX or LTO-IR that begins at an offset of a file, whatever lies there in the file's own
/// view: a program may load any of its bytes. One module at most; a wrapper and anything else have none.
DeviceCode read_device_code(Bytes file, std::uint64_t offset);

}  // namespace kshim::device_code
