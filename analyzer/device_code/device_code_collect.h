// SPDX-License-Identifier: Apache-2.0
// Gathers the fatbins of a file into a DeviceCode. Every byte is looked at once, however its ranges overlap,
// and what is kept is limited, so that neither time nor memory depends on the file's good will.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analyzer/device_code/device_code.h"
#include "kshim/image/fatbin.h"

namespace kshim::analysis {

/// Where fatbins may lie in the file.
enum class RangeKind : std::uint8_t {
  fatbins,      ///< .nv_fatbin: one after the other
  relocatable,  ///< __nv_relfatbin: the same, of relocatable parts
  data,         ///< anywhere
};
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
  void note_kind(std::uint16_t kind, std::uint64_t at, CodeModule& group);
  bool add_image(const image::Image& entry, CodeModule& group, bool relocatable);
  void add_group(CodeModule group, bool relocatable);
  void add_module(CodeModule group, bool relocatable);
  Bytes file_;
  DeviceCode& out_;
  std::vector<CodePart> parts_;
  std::map<std::uint16_t, std::uint32_t> unknown_kinds_;  ///< CodeModule::damage of those that have it
  std::uint64_t cubin_sections_ = 0;                      ///< looked at so far
};

}  // namespace kshim::analysis
