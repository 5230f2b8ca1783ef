// SPDX-License-Identifier: Apache-2.0
// ELF files and cubins: sections, symbols, notes, addresses, kernels, parameters, variables.
#include <vector>

#include "fuzz_target.h"
#include "kshim/image/cubin.h"
#include "kshim/image/elf.h"

using namespace kshim;
using namespace kshim::image;

namespace {

void read_cubin(const CubinReader& cubin, Bytes input) {
  fuzz::require(cubin.arch().cc.major != 0, "a cubin has an architecture");
  std::uint32_t budget = 64;  // kernels looked at closely
  const auto kernels = cubin.each_kernel([&](const KernelInfo& kernel) {
    fuzz::require_inside(kernel.name, input);
    const auto found = cubin.find_kernel(kernel.name);
    fuzz::require(found.ok() && found->name == kernel.name, "a kernel is found by its name");
    for (std::uint32_t ordinal = 0; ordinal < 4; ++ordinal)
      static_cast<void>(cubin.parameter(kernel.name, ordinal));
    return --budget != 0;
  });
  std::uint64_t cursor = 0;
  std::uint32_t names = 0;
  std::vector<KernelSlot> slots;
  for (auto name = cubin.next_name(cursor); name; name = cubin.next_name(cursor)) {
    ++names;
    slots.push_back({{}, name->symbol, name->section});
    slots.back().info.name = name->name;
  }
  if (cubin.describe(slots)) {
    for (std::size_t i = 1; i < slots.size(); ++i)
      fuzz::require(slots[i - 1].symbol < slots[i].symbol, "kernels come back in the order of their symbols");
  }
  if (kernels) fuzz::require(*kernels <= names, "the cheap walk sees every kernel");
  static_cast<void>(cubin.each_global([&](const GlobalInfo& global) {
    fuzz::require_inside(global.name, input);
    fuzz::require_inside(global.initial, input);
    return true;
  }));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes input = fuzz::input_of(data, size);
  static_cast<void>(identify(input));
  const auto elf = ElfReader::open(input);
  if (!elf) {
    fuzz::require(!CubinReader::open(input).ok(), "a cubin is an ELF file");
    return 0;
  }
  fuzz::require(elf->extent() <= input.size(), "a file is no longer than it is");
  for (std::uint32_t index = 0; index < elf->section_count() && index < 256; ++index) {
    const auto section = elf->section(index);
    if (!section) continue;
    fuzz::require_inside(section->name, input);
    fuzz::require_inside(section->bytes, input);
    static_cast<void>(elf->section(section->name));
    const auto part = elf->at_address(section->address, section->size);
    if (part) fuzz::require_inside(*part, input);
    const auto rest = elf->from_address(section->address);
    if (rest) fuzz::require_inside(*rest, input);
    for (std::uint64_t symbol = 0; symbol < elf->symbol_count(*section) && symbol < 64; ++symbol)
      if (const auto read = elf->symbol(*section, symbol)) fuzz::require_inside(read->name, input);
  }
  if (const auto id = elf->build_id()) fuzz::require_inside(*id, input);
  if (const auto cubin = CubinReader::open(input)) read_cubin(*cubin, input);
  return 0;
}
