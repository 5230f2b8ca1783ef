// SPDX-License-Identifier: Apache-2.0
// The argument of one load: a wrapper with its fatbins, a fatbin, a cubin or a PTX text, in memory or in a
// file. select_image() selects a device's image (kshim/image/select.h).
#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kshim/image/image.h"
#include "kshim/image/select.h"
#include "modules/code.h"

namespace kshim::sim {

struct Device;

class ImageSet {
 public:
  /// `copy`: the memory may go away after the call. 200 for anything but an image, and for a damaged
  /// container.
  static CUresult from_memory(const void* image, bool copy, std::unique_ptr<ImageSet>& out);
  /// The same for bytes of known size.
  static CUresult from_bytes(Bytes bytes, bool copy, std::unique_ptr<ImageSet>& out);
  /// 301 when the file cannot be read. `later`: code_for() is the first to say that it is not an image.
  static CUresult from_file(const char* path, std::unique_ptr<ImageSet>& out, bool later = false);

  /// The image for a device, read once for each compute capability; else the code the driver answers.
  CUresult code_for(const Device& device, std::shared_ptr<const Code>& out);
  /// Why the last code_for() of a device failed, as the driver's log says it; may be empty.
  std::string message_for(const Device& device);
  /// The image for a device, decompressed and not parsed: what a linker is given.
  CUresult piece_for(const Device& device, Piece& out, std::string& message) const;
  /// Nothing to load: nvcc gives nearly every program a fatbin without images or with images without kernels.
  bool empty() const noexcept { return linked_.images.empty() && parts_.empty() && unread_ == CUDA_SUCCESS; }

 private:
  /// One fatbin, or the one loose image.
  struct Container {
    std::vector<image::Image> images;
    std::shared_ptr<const std::vector<std::byte>> owner;  ///< null: the program keeps the bytes
    image::Packaging packaging = image::Packaging::fatbin;
  };
  struct Chosen {
    CUresult result = CUDA_ERROR_NO_BINARY_FOR_GPU;
    std::shared_ptr<const Code> code;
    std::string message;
  };
  CUresult add_wrapper(const void* wrapper, bool copy);
  static CUresult read(Bytes bytes, bool copy, Container& out);
  Chosen choose(image::ComputeCapability device) const;
  static CUresult pick(const Container& container, image::ComputeCapability device, Piece& out,
                       std::string& message);
  const Chosen& chosen(const Device& device);

  CUresult unread_ = CUDA_SUCCESS;  ///< why the file is no image, where that is found out later
  Container linked_;
  std::vector<Container>
      parts_;  ///< relocatable code behind a version-2 wrapper: linked at load where `linked_` has no fit
  std::mutex lock_;
  std::map<unsigned, Chosen> chosen_;  ///< by compute capability
};

}  // namespace kshim::sim
