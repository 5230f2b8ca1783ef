// SPDX-License-Identifier: Apache-2.0
// The version-2 wrappers of programs linked with -rdc=true: which parts in __nv_relfatbin belong to which
// module.
#include <fmt/core.h>

#include <algorithm>
#include <cstddef>

#include "analyzer/device_code/device_code_pointers.h"

namespace kshim::analysis {
namespace {

using image::FatbinWrapper;

// Of all modules together. NCCL 2.28, the largest program of relocatable code seen, has 976 images in its
// parts.
constexpr std::size_t kMostLinks = std::size_t{1} << 22;

template <class Visit>
void each_linked_wrapper(const std::vector<CodeRange>& ranges, Bytes file, Visit&& visit) {
  std::uint64_t done = 0;  // ranges are sorted: sections that share their bytes are read once
  for (const CodeRange& range : ranges) {
    for (std::uint64_t at = std::max(range.begin, done); at + sizeof(FatbinWrapper) <= range.end;
         at += sizeof(FatbinWrapper)) {
      const auto wrapper = read_le<FatbinWrapper>(file, at);
      if (!wrapper) break;
      if (wrapper->magic == image::kWrapperMagic && wrapper->version == 2 && !visit(at)) return;
    }
    done = std::max(done, range.end);
  }
}

class PartLinker {
 public:
  PartLinker(const PointerMap& pointers, CodeCollector& collector, DeviceCode& out)
      : pointers_(pointers), collector_(collector), parts_(collector.parts()), out_(out) {}

  /// false: enough is enough.
  bool link(std::uint64_t wrapper) {
    const auto address = pointers_.address_of(wrapper);
    const auto fatbin = address ? pointers_.follow(*address + offsetof(FatbinWrapper, fatbin)) : std::nullopt;
    const auto index = fatbin ? find_module(out_, *fatbin) : std::nullopt;
    if (!index) {
      collector_.damage(wrapper, "a fatbin's wrapper points at no fatbin");
      return true;
    }
    // Two wrappers of one fatbin are one module all the same.
    if (CodeModule& module = out_.modules[*index]; module.parts.empty())
      add_parts(module, pointers_.read(*address + offsetof(FatbinWrapper, prelinked)), wrapper);
    return links_ < kMostLinks;
  }

 private:
  const CodePart* part_at(std::uint64_t address) const {
    const auto offset = address != PointerMap::kElsewhere ? pointers_.offset_of(address) : std::nullopt;
    if (!offset) return nullptr;
    const auto at =
        std::lower_bound(parts_.begin(), parts_.end(), *offset,
                         [](const CodePart& each, std::uint64_t wanted) { return each.offset < wanted; });
    return at != parts_.end() && at->offset == *offset ? &*at : nullptr;
  }

  void add_parts(CodeModule& module, std::uint64_t list, std::uint64_t wrapper) {
    std::uint64_t steps = 0;
    if (list != 0 && list != PointerMap::kElsewhere && pointers_.offset_of(list)) {
      for (;; list += sizeof(std::uint64_t), ++steps) {
        const std::uint64_t target = pointers_.read(list);
        if (target == 0 || ++links_ > kMostLinks) break;
        const CodePart* part = part_at(target);
        if (part == nullptr || steps == parts_.size()) {
          collector_.damage(wrapper,
                            part == nullptr ? "the wrapper's list of parts points at something else"
                                            : "the wrapper's list of parts is longer than there are parts",
                            &module);
          break;
        }
        add_part(module, *part);
      }
    }
    // nvcc keeps the list in .bss and constructors fill it: then every part of the file belongs to the
    // module.
    if (steps != 0) return;
    for (const CodePart& part : parts_) add_part(module, part);
  }

  /// Of a relocatable part only the PTX can be loaded; its cubins are what the linker made the module's from.
  void add_part(CodeModule& module, const CodePart& part) {
    if (module.damage == 0) module.damage = part.damage;
    for (std::uint32_t index = part.first; index < part.first + part.count; ++index) {
      ++links_;
      if (links_ > kMostLinks) return;
      if (out_.images[index].candidate.kind == image::ImageKind::ptx) module.parts.push_back(index);
    }
  }

  const PointerMap& pointers_;
  CodeCollector& collector_;
  const std::vector<CodePart>& parts_;
  DeviceCode& out_;
  std::size_t links_ = 0;
};

}  // namespace

bool has_linked_wrapper(const std::vector<CodeRange>& wrappers, Bytes file) {
  bool found = false;
  each_linked_wrapper(wrappers, file, [&](std::uint64_t) {
    found = true;
    return false;
  });
  return found;
}

void link_parts(const std::vector<CodeRange>& wrappers, const PointerMap& pointers, Bytes file,
                CodeCollector& collector, DeviceCode& out) {
  PartLinker linker(pointers, collector, out);
  each_linked_wrapper(wrappers, file, [&](std::uint64_t at) { return linker.link(at); });
}

}  // namespace kshim::analysis
