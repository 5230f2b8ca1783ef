// SPDX-License-Identifier: Apache-2.0
// The contents of the selected image: kernels and variables by name. Immutable; a kernel's attributes are
// read at the first use, because libraries hold thousands of kernels and use few.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/driver_api.h"
#include "kshim/image/cubin.h"
#include "kshim/image/ptx.h"

namespace kshim::sim {

struct KernelCode {
  image::KernelInfo info;  ///< unknown values are settled by function_attribute()
  std::vector<image::ParameterInfo> parameters;
  int binary_version = 0;  ///< CU_FUNC_ATTRIBUTE_BINARY_VERSION
  int ptx_version = 0;     ///< CU_FUNC_ATTRIBUTE_PTX_VERSION
  /// Bytes from the first parameter to the end of the last.
  std::size_t parameter_bytes() const noexcept;
};

/// A decompressed image, and the architecture that it was selected as.
struct Piece {
  Bytes bytes;
  std::shared_ptr<const std::vector<std::byte>> owner;  ///< null: the bytes are the program's
  bool ptx = false;
  bool tile = false;  ///< Tile IR
  image::Arch arch;   ///< by the fatbin entry, whose suffix a cubin need not repeat
};

class Code {
 public:
  /// `device`: what PTX is compiled for. 200 for a cubin that cannot be read, 218 for such PTX; then
  /// `message` says why.
  static CUresult open(std::vector<Piece> pieces, image::ComputeCapability device,
                       std::shared_ptr<const Code>& out, std::string& message);

  const std::vector<std::string_view>& kernel_names() const noexcept { return names_; }
  const std::vector<image::GlobalInfo>& globals() const noexcept { return globals_; }
  /// Whether the image has the name of a texture or surface reference: in a table of names, or in PTX.
  bool has_text(std::string_view name) const noexcept;
  bool has_kernel(std::string_view name) const noexcept { return places_.contains(name); }
  /// Null when there is no such kernel. Thread-safe; the result lives as long as the code.
  const KernelCode* kernel(std::string_view name) const;

 private:
  struct Opened {
    Piece piece;
    image::CubinReader cubin;
    image::PtxReader text;
    std::unordered_map<std::string_view, image::KernelInfo> in_text;
  };
  CUresult add_cubin(Opened& opened, std::string& message);
  CUresult add_ptx(Opened& opened, std::string& message);
  CUresult add_tile(Opened& opened);
  void add_name(std::string_view name, const Opened& from);
  std::unique_ptr<KernelCode> read(std::string_view name, const Opened& from) const;

  image::ComputeCapability device_;
  std::vector<Opened> pieces_;
  std::vector<std::string_view> names_;
  std::unordered_map<std::string_view, std::size_t> places_;  ///< to the index of the piece
  std::vector<image::GlobalInfo> globals_;
  std::vector<std::vector<std::byte>> initial_;  ///< of PTX variables: what `globals_` looks into
  mutable std::mutex lock_;
  mutable std::unordered_map<std::string_view, std::unique_ptr<KernelCode>> kernels_;
};

}  // namespace kshim::sim
