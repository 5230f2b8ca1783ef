// SPDX-License-Identifier: Apache-2.0
// What is inside an image: its kernels and the toolkit that made it. Decompresses payloads.
#pragma once

#include "analyzer/device_code/device_code.h"
#include "analyzer/device_code/source_lines.h"
#include "kshim/image/cubin.h"

namespace kshim::device_code {

/// One image of a module with what is inside.
struct FileImage {
  image::Candidate candidate;
  image::Compression compression = image::Compression::none;
  std::uint64_t bytes = 0;           ///< uncompressed
  std::vector<std::string> kernels;  ///< mangled
  bool kernels_read = false;
  std::map<std::string, SourceLine> lines;  ///< of kernels; empty but for -lineinfo and -G
  image::Version toolkit;                   ///< that built it; unknown where the image does not say
};

struct FileModule {
  std::vector<FileImage> images;
  std::string damage;        ///< empty, or what is wrong and where: "a fatbin ends before ... at offset 4096"
  bool has_kernels() const;  ///< where it was not read, it may have some: true
};

/// The images of a module as the driver sees them: those of its fatbin, and for each architecture of its
/// relocatable parts one, which is all of them together. Payloads are read as long as they fit into `budget`,
/// in bytes in the clear, and taken off it; of the rest only the headers.
FileModule read_module(const DeviceCode& code, const CodeModule& module, std::uint64_t& budget);

/// One image of a module with the sizes of some kernels' machine code, in the order in which they were asked
/// for; 0: not there, or PTX.
struct ImageBodies {
  image::Candidate candidate;
  std::vector<std::uint64_t> bytes;
};
/// Of every image of a module whose payload fits into `budget`; nothing for relocatable code, which the
/// linker puts together again.
std::vector<ImageBodies> read_bodies(const DeviceCode& code, const CodeModule& module,
                                     const std::vector<std::string>& kernels, std::uint64_t& budget);

/// The image as the decompressor takes it.
image::Image entry_of(const CodeImage& image);

/// Calls visit(mangled name) for each kernel of a cubin or PTX in the clear, until it answers false. False
/// where the image cannot be read to its end.
bool each_kernel_name(image::ImageKind kind, Bytes clear, const std::function<bool(std::string_view)>& visit);
/// The toolkit that made a cubin, as its notes say; unknown where they do not, and for other kinds.
image::Version toolkit_of(image::ImageKind kind, Bytes clear);

// All kernels of an image with what each needs: registers, shared memory, threads a block.

/// Reads images one after the other; keeps its memory between them.
class KernelLister {
 public:
  /// The kernels of a cubin or PTX in the clear, valid until the next call; they point into `clear`. Of PTX,
  /// which is no machine code yet, only name and max_threads are known. `whole` is false where the image
  /// cannot be read to its end.
  struct List {
    const std::vector<image::KernelSlot>& kernels;
    bool whole;
  };
  List list(image::ImageKind kind, Bytes clear);

 private:
  bool list_cubin(Bytes clear);
  bool list_ptx(Bytes clear);
  std::vector<image::KernelSlot> kernels_;
};

// The number of images of each architecture in a file.

/// How often an architecture occurs in a file.
struct ImageCount {
  image::Candidate candidate;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;   ///< uncompressed
  std::uint64_t stored = 0;  ///< in the file
};

/// What tells images apart for a driver. Sorts cubins first, each kind by architecture.
constexpr auto program_of(const image::Candidate& image) {
  return std::tuple(image.kind != image::ImageKind::cubin, image.kind, image.arch, image.isa);
}
using ProgramKey = decltype(program_of(image::Candidate{}));

/// Whether a driver that takes one takes the other as well: same kind, architecture and PTX ISA.
constexpr bool same_program(const image::Candidate& a, const image::Candidate& b) {
  return program_of(a) == program_of(b);
}

/// Images that a driver or a linker can take as they are, by kind, architecture and ISA; cubins first.
std::vector<ImageCount> count_images(const DeviceCode& code);

}  // namespace kshim::device_code
