// SPDX-License-Identifier: Apache-2.0
// Cubins: ELF with machine 190. Architecture, kernels and what they need, global variables. Views, no heap.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "kshim/image/elf.h"
#include "kshim/image/image.h"

namespace kshim::image {

/// Sizes are in bytes unless a comment says otherwise; kUnknown if the image does not have the value.
struct KernelInfo {
  static constexpr std::uint32_t kUnknown = 0xffffffff;
  std::string_view name;                    ///< mangled
  std::uint32_t registers = kUnknown;       ///< per thread
  std::uint32_t shared_bytes = kUnknown;    ///< static
  std::uint32_t local_bytes = kUnknown;     ///< per thread
  std::uint32_t constant_bytes = kUnknown;  ///< user constants of the module
  std::uint32_t max_threads =
      kUnknown;  ///< per block, __launch_bounds__ or .maxntid; kUnknown = device limit
  std::uint32_t parameter_bytes = kUnknown;
  std::uint32_t parameter_count = 0;
  std::uint64_t code_bytes = 0;
};
/// A kernel without its attributes, for listing.
struct KernelName {
  std::string_view name;  ///< mangled
  std::uint64_t code_bytes = 0;
  std::uint64_t symbol = 0;   ///< index into the symbol table
  std::uint32_t section = 0;  ///< index of its .text section
};
/// A kernel whose attributes are looked up together with those of others.
struct KernelSlot {
  KernelInfo info;
  std::uint64_t symbol = 0;
  std::uint32_t section = 0;
};
struct ParameterInfo {
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
};
struct GlobalInfo {
  std::string_view name;
  std::uint64_t size = 0;
  bool constant = false;
  bool managed = false;
  Bytes initial;  ///< empty = zeros
};

class CubinReader {
 public:
  CubinReader() = default;
  /// Errc::bad_magic when the bytes are an ELF file for another machine.
  static Result<CubinReader> open(Bytes bytes) noexcept;
  /// Both ELF ABI versions (7: older toolkits, 8: CUDA 12.9 for SM 100 and later, CUDA 13 for all). The
  /// suffix comes from e_flags, .nv.compat or .note.nv.tkinfo, and is `none` if the file has none of them:
  /// inside a fatbin, the entry's flags decide.
  Arch arch() const noexcept { return arch_; }
  const ElfReader& elf() const noexcept { return elf_; }
  /// The toolkit whose ptxas made it, as .note.nv.tkinfo says; unknown (0.0) where there is no such note.
  Version toolkit() const noexcept { return toolkit_; }

  /// Calls visit(const KernelInfo&) -> bool (false stops) for each kernel. Damaged symbols are an error.
  template <class Visit>
  Result<std::uint32_t> each_kernel(Visit&& visit) const {
    std::uint32_t count = 0;
    for (std::uint64_t cursor = 0;;) {
      const auto kernel = next_kernel(cursor);
      if (!kernel) {
        if (kernel.error().code == Errc::not_found) return count;
        return kernel.error();
      }
      ++count;
      if (!visit(*kernel)) return count;
    }
  }
  /// Lists all kernels, one step for each symbol. `cursor` starts at 0; Errc::not_found at the end.
  Result<KernelName> next_name(std::uint64_t& cursor) const noexcept;
  Result<KernelInfo> find_kernel(std::string_view name) const noexcept;
  /// Fills the attributes of all kernels of the span, which next_name() found, in one pass over the sections:
  /// a cubin has several sections a kernel, and thousands of kernels. Leaves them ordered by symbol. Errors
  /// are of sections that cannot be read.
  Result<std::size_t> describe(std::span<KernelSlot> kernels) const noexcept;
  /// Parameter `ordinal` of a kernel (KPARAM_INFO). Errc::not_found past the last.
  Result<ParameterInfo> parameter(std::string_view kernel, std::uint32_t ordinal) const noexcept;

  template <class Visit>
  Result<std::uint32_t> each_global(Visit&& visit) const {
    std::uint32_t count = 0;
    for (std::uint64_t cursor = 0;;) {
      const auto global = next_global(cursor);
      if (!global) {
        if (global.error().code == Errc::not_found) return count;
        return global.error();
      }
      ++count;
      if (!visit(*global)) return count;
    }
  }

 private:
  Result<KernelInfo> next_kernel(
      std::uint64_t& cursor) const noexcept;  ///< cursor: index into the symbol table
  Result<GlobalInfo> next_global(std::uint64_t& cursor) const noexcept;
  Result<KernelInfo> kernel_of(const KernelName& name) const noexcept;
  ElfReader elf_;
  ElfSection symbols_;
  Version toolkit_;
  Arch arch_;
};

}  // namespace kshim::image
