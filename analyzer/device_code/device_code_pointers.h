// SPDX-License-Identifier: Apache-2.0
// Where the pointers of a host file lead, without loading it: in place, or by relocations, which are indexed
// once. And what that is needed for: which relocatable parts belong to which module.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "analyzer/device_code/device_code.h"
#include "analyzer/device_code/device_code_collect.h"
#include "kshim/image/elf.h"
#include "kshim/image/pe.h"

namespace kshim::analysis {

/// Addresses are link-time virtual addresses; in a relocatable object, where all sections start at 0, file
/// offsets.
class PointerMap {
 public:
  static PointerMap of_elf(const image::ElfReader& elf);
  static PointerMap of_pe(Bytes file, const image::PeReader& pe);
  /// What the pointer at an address holds; 0 where it is null, kElsewhere where it leads out of the file's
  /// contents.
  std::uint64_t read(std::uint64_t address) const;
  std::optional<std::uint64_t> offset_of(std::uint64_t address) const;
  /// The file offset that the pointer at an address leads to.
  std::optional<std::uint64_t> follow(std::uint64_t address) const;
  std::optional<std::uint64_t> address_of(std::uint64_t offset) const;
  static constexpr std::uint64_t kElsewhere = UINT64_MAX;

 private:
  struct Piece {
    std::uint64_t address = 0;
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
  };
  struct Relocation {
    std::uint64_t place = 0;
    std::uint64_t target = 0;
  };
  void add_relocations(const image::ElfReader& elf, const image::ElfSection& section);
  void sort();
  Bytes file_;
  std::uint64_t base_ = 0;  ///< what pointers in place are too large by
  bool in_place_ = true;
  std::vector<Piece> by_address_;
  std::vector<Piece> by_offset_;
  std::vector<Relocation> relocations_;
};

/// Gives each module whose wrapper (in `wrappers`, ranges of the file) has version 2 its parts.
void link_parts(const std::vector<CodeRange>& wrappers, const PointerMap& pointers, Bytes file,
                CodeCollector& collector, DeviceCode& out);
/// Whether any wrapper has version 2: reading the relocations costs more than everything else.
bool has_linked_wrapper(const std::vector<CodeRange>& wrappers, Bytes file);

}  // namespace kshim::analysis
