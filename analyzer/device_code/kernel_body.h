// SPDX-License-Identifier: Apache-2.0
// Whether a kernel's code does anything, or only returns, stops or complains: what is left of it behind an
// `#if __CUDA_ARCH__` that this architecture does not meet.
#pragma once

#include "kshim/image/image.h"

namespace kshim::device_code {

enum class BodyKind : std::uint8_t {
  unknown,  ///< not there, or of an encoding that is not known
  works,    ///< does something
  returns,  ///< does nothing
  stops,    ///< stops the whole grid: __trap()
  prints,   ///< does little, and calls printf or assert
};

struct KernelBody {
  BodyKind kind = BodyKind::unknown;
  std::uint64_t bytes = 0;  ///< machine code, or text
};

/// Of a cubin or PTX in the clear. Machine code from Maxwell on; a debug build (-G) may pass for one that
/// works.
KernelBody read_body(image::ImageKind kind, Bytes clear, std::string_view kernel);

/// Nothing is left of the kernel here, where there is more of it in the other image.
bool is_stub_of(const KernelBody& body, const KernelBody& other);

}  // namespace kshim::device_code
