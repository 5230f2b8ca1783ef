// SPDX-License-Identifier: Apache-2.0
// Which ranges of a host file may hold fatbins, and which hold the wrappers that point at them.
#pragma once

#include "analyzer/device_code/device_code.h"
#include "kshim/image/elf.h"
#include "kshim/image/fatbin.h"
#include "kshim/image/pe.h"

namespace kshim::device_code {

/// An ELF file, with as much of its headers as is there and makes sense.
void find_in_elf(Bytes file, DeviceCode& out);
/// false: not a PE file.
bool find_in_pe(Bytes file, DeviceCode& out);

// Gathers the fatbins of a file into a DeviceCode. Every byte is looked at once, however its ranges overlap,
// and what is kept is limited, so that neither time nor memory depends on the file's good will.

/// Where fatbins may lie in the file.
enum class RangeKind : std::uint8_t {
  fatbins,      ///< .nv_fatbin: one after the other
  relocatable,  ///< __nv_relfatbin: the same, of relocatable parts
  data,         ///< anywhere
  foreign,      ///< anywhere in a file of another kind: PTX as well
};
/// Whether fatbins may begin anywhere, and what only looks like one is passed over.
constexpr bool is_search(RangeKind kind) { return kind >= RangeKind::data; }
struct CodeRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  RangeKind kind = RangeKind::data;
};

/// The fatbin of a relocatable part: images [first, first + count).
struct CodePart {
  std::uint64_t offset = 0;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t damage = 0;  ///< as CodeModule::damage
};

class CodeCollector {
 public:
  CodeCollector(Bytes file, DeviceCode& out) : file_(file), out_(out) {}
  /// All ranges, in the order of the file. Modules and parts come out sorted by offset.
  void collect(std::vector<CodeRange> ranges);
  /// The fatbin at an offset, aligned or not.
  void collect_one(std::uint64_t at) { add_fatbin(at, {at, file_.size(), RangeKind::fatbins}); }
  /// With `module`, notes it there too.
  void damage(std::uint64_t offset, std::string what, CodeModule* module = nullptr,
              Damage::Of of = Damage::Of::device_code);
  /// Of the file around the device code, which may hold none at all.
  void host_damage(std::uint64_t offset, std::string what);
  const std::vector<CodePart>& parts() const { return parts_; }

 private:
  void walk(const CodeRange& range);
  void search(const CodeRange& range);
  /// Lists the fatbin at `at`, which ends at `end` at the latest; returns where to go on, beyond `at`. In
  /// data, what only looks like the start of a fatbin is passed over.
  std::uint64_t add_fatbin(std::uint64_t at, const CodeRange& range);
  /// The same for a cubin in data.
  std::uint64_t add_cubin(std::uint64_t at, const CodeRange& range);
  /// The same for PTX, which ends where the text does.
  std::uint64_t add_ptx(std::uint64_t at, const CodeRange& range);
  void note_kind(std::uint16_t kind, std::uint64_t at, CodeModule& group);
  bool add_image(const image::Image& entry, CodeModule& group, bool relocatable);
  void add_group(CodeModule group, bool relocatable);
  void add_module(CodeModule group, bool relocatable);
  Bytes file_;
  DeviceCode& out_;
  std::vector<CodePart> parts_;
  std::map<std::uint16_t, std::uint32_t> unknown_kinds_;  ///< CodeModule::damage of those that have it
  std::uint64_t cubin_sections_ = 0;                      ///< looked at so far
  std::uint64_t ptx_misses_ = 0;                          ///< words that PTX could have begun with
};

// Where the pointers of a host file lead, without loading it: in place, or by relocations, which are indexed
// once. And what that is needed for: which relocatable parts belong to which module.

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

}  // namespace kshim::device_code
