// SPDX-License-Identifier: Apache-2.0
#include "analyzer/device_code/object_file.h"

#include <elf.h>

#include "analyzer/core/text.h"

namespace kshim::device_code {
namespace {

using image::BlobKind;
using image::ElfReader;
using image::FatbinWrapper;

// Searching a kernel decompresses everything; files with more device code, in the clear, are not searched.
constexpr std::uint64_t kMaxSearchBytes = std::uint64_t{256} << 20;
// Of one module; the largest seen, NCCL 2.28's, has 0.73 GB in the clear.
constexpr std::uint64_t kMaxModuleBytes = std::uint64_t{2} << 30;

}  // namespace

std::string build_id_of(const std::string& path) {
  const auto opened = MappedFile::open(path);
  const auto* file = std::get_if<MappedFile>(&opened);
  if (file == nullptr) return {};
  const auto elf = ElfReader::open(file->bytes());
  if (!elf) return {};
  const auto id = elf->build_id();
  return id ? core::hex(*id) : std::string();
}

std::variant<ObjectFile, std::string> ObjectFile::open(const std::string& path, std::string_view build_id) {
  const FileTime timed;
  auto opened = MappedFile::open(path);
  if (auto* why = std::get_if<std::string>(&opened)) return *why;
  auto file = std::get<MappedFile>(std::move(opened));
  switch (image::identify(file.bytes())) {
    case BlobKind::fatbin:
    case BlobKind::cubin:
    case BlobKind::ptx:
    case BlobKind::ltoir:
      if (!build_id.empty()) return std::string("has changed since: it is a bare image now");
      return ObjectFile(std::move(file), HostFormat::none, {});
    default:
      break;
  }
  const auto elf = ElfReader::open(file.bytes());
  if (!elf && build_id.empty() && image::PeReader::open(file.bytes()))
    return ObjectFile(std::move(file), HostFormat::pe, {});
  if (!elf) return fmt::format("is not an ELF file that can be read: it {}", describe(elf.error().code));
  const auto id = elf->build_id();
  const std::string found = id ? core::hex(*id) : std::string();
  if (found != build_id) {
    return build_id.empty() || found.empty()
               ? std::string("has changed since: its build id differs")
               : fmt::format("has changed since: its build id is {} now", found.substr(0, 12));
  }
  return ObjectFile(std::move(file), HostFormat::elf, *elf);
}

const DeviceCode& ObjectFile::code() const {
  if (code_) return *code_;
  const FileTime timed;
  code_ = find_device_code(file_.bytes());
  return *code_;
}

const PointerMap& ObjectFile::pointers() const {
  if (pointers_) return *pointers_;
  const FileTime timed;
  if (host_ == HostFormat::elf) {
    pointers_ = PointerMap::of_elf(elf_);
  } else if (const auto pe = image::PeReader::open(file_.bytes())) {
    pointers_ = PointerMap::of_pe(file_.bytes(), *pe);
  } else {
    pointers_.emplace();
  }
  return *pointers_;
}

FileModule ObjectFile::module(std::size_t index, std::uint64_t& budget) const {
  const FileTime timed;
  return read_module(code(), code().modules[index], budget);
}

FileModule ObjectFile::module(std::size_t index) const {
  std::uint64_t budget = kMaxModuleBytes;
  return module(index, budget);
}

std::variant<std::uint64_t, std::string> ObjectFile::locate(std::uint64_t address) const {
  if (is_bare()) return std::uint64_t{0};
  const auto kind_at = [this](std::uint64_t offset) {
    return image::identify(file_.bytes().subspan(static_cast<std::size_t>(offset)));
  };
  const auto offset = pointers().offset_of(address);
  if (!offset) return fmt::format("the file has nothing at address {:#x}", address);
  if (kind_at(*offset) != BlobKind::fatbin_wrapper) return *offset;
  const auto behind = pointers().follow(address + offsetof(FatbinWrapper, fatbin));
  // A wrapper that points at a wrapper leads nowhere, perhaps forever.
  if (behind && kind_at(*behind) == BlobKind::fatbin) return *behind;
  return fmt::format("the fatbin's wrapper at offset {} points nowhere", *offset);
}

FileModule ObjectFile::read_module_at(std::uint64_t address) const {
  const FileTime timed;
  FileModule out;
  const auto place = locate(address);
  if (const auto* why = std::get_if<std::string>(&place)) {
    out.damage = *why;
    return out;
  }
  const std::uint64_t offset = std::get<std::uint64_t>(place);
  if (const auto index = find_module(code(), offset)) return module(*index);
  // Programs load images from where find_device_code() does not look: a cubin or PTX among their constants.
  const DeviceCode here = read_device_code(file_.bytes(), offset);
  std::uint64_t budget = kMaxModuleBytes;
  if (!here.modules.empty()) return read_module(here, here.modules.front(), budget);
  out.damage = here.damage.empty()
                   ? fmt::format("what lies at address {:#x} is neither a fatbin nor an image", address)
                   : fmt::format("{} at offset {}", here.damage.front().what, here.damage.front().offset);
  return out;
}

std::vector<ImageBodies> ObjectFile::bodies_at(std::uint64_t address, const std::vector<std::string>& kernels,
                                               std::uint64_t& budget) const {
  const FileTime timed;
  const auto place = locate(address);
  const auto* offset = std::get_if<std::uint64_t>(&place);
  const auto index = offset != nullptr ? find_module(code(), *offset) : std::nullopt;
  if (!index) return {};
  return read_bodies(code(), code().modules[*index], kernels, budget);
}

bool ObjectFile::is_searchable() const {
  std::uint64_t bytes = 0;
  for (const CodeModule& module : code().modules) {
    each_image_of(
        module, [&](std::uint32_t index) { bytes += std::min(code().images[index].bytes, kMaxSearchBytes); });
    if (bytes > kMaxSearchBytes) return false;
  }
  return true;
}

FileModule ObjectFile::find_module_with_kernel(const std::string& kernel) const {
  if (!is_searchable()) return {};
  for (std::size_t index = 0; index < code().modules.size(); ++index) {
    FileModule found = module(index);
    for (const FileImage& image : found.images) {
      if (std::find(image.kernels.begin(), image.kernels.end(), kernel) != image.kernels.end()) return found;
    }
  }
  return {};
}

FileModule ObjectFile::find_only_module_with_kernels() const {
  if (!is_searchable()) return {};
  FileModule found;
  for (std::size_t index = 0; index < code().modules.size(); ++index) {
    FileModule each = module(index);
    if (each.images.empty() || !each.has_kernels()) continue;
    if (!found.images.empty()) return {};
    found = std::move(each);
  }
  return found;
}

std::string ObjectFile::find_symbol_at(std::uint64_t address) const {
  const FileTime timed;
  for (const std::string_view table_name : {".symtab", ".dynsym"}) {
    const auto table = elf_.section(table_name);
    if (!table) continue;
    const std::uint64_t count = elf_.symbol_count(*table);
    for (std::uint64_t index = 0; index < count; ++index) {
      const auto symbol = elf_.symbol(*table, index);
      if (!symbol) break;
      if (ELF64_ST_TYPE(symbol->info) != STT_FUNC || symbol->section == SHN_UNDEF) continue;
      if (address >= symbol->value && address - symbol->value < symbol->size)
        return std::string(symbol->name);
    }
  }
  return {};
}

FileModule ObjectFile::module_at(std::uint64_t address) const {
  return modules_.get(ModuleMemory::By::address, std::to_string(address),
                      [&] { return read_module_at(address); });
}

FileModule ObjectFile::module_with_kernel(const std::string& kernel) const {
  return modules_.get(ModuleMemory::By::kernel, kernel, [&] { return find_module_with_kernel(kernel); });
}

FileModule ObjectFile::only_module_with_kernels() const {
  return modules_.get(ModuleMemory::By::alone, {}, [&] { return find_only_module_with_kernels(); });
}

std::string ObjectFile::symbol_at(std::uint64_t address) const {
  constexpr std::size_t kMax = 4096;
  if (const auto known = symbols_.find(address); known != symbols_.end()) return known->second;
  std::string found = find_symbol_at(address);
  if (symbols_.size() < kMax) symbols_.emplace(address, found);
  return found;
}

bool ObjectFile::has_dwarf() const { return host_ == HostFormat::elf && elf_.section(".debug_info"); }

bool ObjectFile::is_shared_library() const {
  return host_ == HostFormat::elf && elf_.type() == ET_DYN && !elf_.section(".interp");
}

bool ObjectFile::has_relocatable_code() const {
  const auto& images = code().images;
  return !is_bare() &&
         std::any_of(images.begin(), images.end(), [](const CodeImage& image) { return image.relocatable; });
}

}  // namespace kshim::device_code
