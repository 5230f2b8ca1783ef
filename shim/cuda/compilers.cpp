// SPDX-License-Identifier: Apache-2.0
#include "cuda/compilers.h"

#include "guest/slices.h"
#include "guest/text_buffer.h"
#include "process/loaded_objects.h"
#include "process/scattered_read.h"

namespace kshim::shim {
namespace {

/// The mapped libraries that define a function, in link order.
struct Copies {
  const HookRow& row;
  std::string_view node;  ///< empty: any
  PageCache& pages;
  static constexpr std::size_t kMax = 8;
  struct Copy {
    AnyFunction function = nullptr;
    Text<128> soname;
    bool global = false;  ///< came with the program
  };
  Copy copies[kMax] = {};
  std::size_t count = 0;
  bool after_shim = false;
};

bool collect_copy(void* context, const LoadedObject& object) {
  auto& out = *static_cast<Copies*>(context);
  const bool shim = is_shim(object.elf.base());
  out.after_shim = out.after_shim || shim;
  if (shim || !out.after_shim) return true;  // the linker searches objects before the shim first
  const AnyFunction found =
      object.elf.through(out.pages).find_linked(out.row.name, out.row.gnu_hash, out.node);
  if (found == nullptr) return true;
  Copies::Copy& copy = out.copies[out.count++];
  copy.function = found;
  copy.soname << object.soname;
  copy.global = object.at_start;
  return out.count < Copies::kMax;
}

// The dynamic linker satisfies every DT_NEEDED of a soname with the first loaded copy. Renamed copies (in
// wheels) have sonames of their own.
AnyFunction copy_for(const Copies& copies, const LoadedElf& importer) noexcept {
  for (std::size_t i = 0; i < copies.count; ++i)
    if (importer.needs(copies.copies[i].soname.view())) return copies.copies[i].function;
  return copies.copies[0].function;
}

std::string_view folder_of(std::string_view path) noexcept {
  return part_of(path, 0, path.size() - base_name(path).size());
}

/// What an object in the caller's folder is linked to.
struct Importers {
  const Copies& copies;
  std::string_view folder;
  AnyFunction beside = nullptr;
};

/// Whether an object is linked to one of the copies, or to something that may be.
bool is_linked(const Copies& copies, const LoadedElf& elf) noexcept {
  for (std::size_t i = 0; i < copies.count; ++i)
    if (elf.needs(copies.copies[i].soname.view())) return elf.imports(copies.row.name);
  return false;
}

bool ask_importer(void* context, const LoadedObject& object) {
  auto& out = *static_cast<Importers*>(context);
  const LoadedElf elf = object.elf.through(out.copies.pages);
  if (folder_of(object.path) != out.folder || !is_linked(out.copies, elf)) return true;
  out.beside = copy_for(out.copies, elf);
  return false;
}

}  // namespace

// Searched at each call: a compilation takes milliseconds, and an earlier result may be unloaded. The caller
// need not be the file that is linked to the library: PyTorch passes function pointers in a table, and
// compilers turn tail calls into jumps.
AnyFunction find_compiler(Hook hook, std::string_view node, const void* caller) noexcept {
  PageCache pages;
  Copies copies{.row = row_of(hook), .node = node, .pages = pages};
  for_each_loaded_object(collect_copy, &copies);
  if (copies.count < 2 || copies.copies[0].global) return copies.copies[0].function;
  const LoadedObject from = find_object_in_use(caller);
  if (from && from.elf.imports(copies.row.name)) return copy_for(copies, from.elf);
  Importers importers{.copies = copies, .folder = folder_of(from.path)};
  for_each_loaded_object(ask_importer, &importers);
  return importers.beside != nullptr ? importers.beside : copies.copies[0].function;
}

bool has_compiler(Hook hook) noexcept { return find_compiler(hook, {}, nullptr) != nullptr; }

}  // namespace kshim::shim
