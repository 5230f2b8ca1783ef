// SPDX-License-Identifier: Apache-2.0
// cuLink*: nothing is compiled. One cubin is its own result; PTX texts become one PTX text, which this driver
// loads like a cubin; static libraries add nothing. What would need a linker or a compiler for more is
// refused with 801.
#pragma once
#include <string>
#include <vector>

#include "base/driver_api.h"
#include "base/handles.h"
#include "modules/image_set.h"
#include "modules/jit_options.h"

namespace kshim::sim {

struct Device;

struct Linker : Handled<Kind::linker> {
  Linker(const Device& on, const JitOptions& with);
  /// The driver answers here what the image gives on the device: 209, 218, 222 and so on.
  CUresult add(CUjitInputType type, Bytes data);
  /// The result lives as long as the linker.
  CUresult complete(void*& out, std::size_t& size);
  const Device& device;

 private:
  std::vector<CUjit_option> options_;
  void** values_;  ///< the program's: sizes of logs are written back
  std::vector<std::byte> cubin_;
  std::string ptx_;
  unsigned cubins_ = 0;
};

/// Several PTX modules as one: the directives that may stand only once are the first module's.
std::string join_ptx(const std::string& first, std::string_view next);

}  // namespace kshim::sim
