// SPDX-License-Identifier: Apache-2.0
#include "analyzer/model/object_file.h"

#include <elf.h>
#include <fmt/core.h>

#include <algorithm>

#include "analyzer/model/image_contents.h"
#include "kshim/image/fatbin.h"

namespace kshim::analysis {
namespace {

using image::ElfReader;
using image::FatbinReader;
using image::FatbinWrapper;

// Sections nvcc puts fatbins into; __nv_relfatbin holds the parts of relocatable device code (-rdc=true).
constexpr std::string_view kFatbinSections[] = {".nv_fatbin", "__nv_relfatbin"};
// No program of ours links more relocatable parts; NCCL has a few hundred.
constexpr std::size_t kMostParts = 65536;
// Searching a kernel decompresses everything; larger files are not searched.
constexpr std::size_t kLargestSearch = std::size_t{64} << 20;

std::string hex(Bytes bytes) {
  std::string out;
  for (const std::byte byte : bytes) out += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return out;
}

// Fatbins stand 8-byte aligned, with zeros between.
template <class Visit>
void each_fatbin(Bytes section, Visit&& visit) {
  std::uint64_t at = 0;
  while (at + 16 <= section.size()) {
    const auto rest = slice(section, at, section.size() - at);
    const auto fatbin = FatbinReader::open(*rest);
    if (!fatbin) {
      at += 8;
      continue;
    }
    visit(*fatbin, at);
    at += std::max<std::uint64_t>(8, (fatbin->size() + 7) / 8 * 8);
  }
}

bool same_kind(const image::Candidate& a, const image::Candidate& b) {
  return a.kind == b.kind && a.arch == b.arch && a.isa == b.isa;
}

}  // namespace

bool FileModule::has_kernels() const {
  return std::any_of(images.begin(), images.end(),
                     [](const FileImage& image) { return !image.kernels_read || !image.kernels.empty(); });
}

std::variant<ObjectFile, std::string> ObjectFile::open(const std::string& path, std::string_view build_id) {
  auto opened = MappedFile::open(path);
  if (auto* why = std::get_if<std::string>(&opened)) return *why;
  auto file = std::get<MappedFile>(std::move(opened));
  switch (image::identify(file.bytes())) {
    case image::BlobKind::fatbin:
    case image::BlobKind::cubin:
    case image::BlobKind::ptx:
      if (!build_id.empty()) return std::string("has changed since: it is a bare image now");
      return ObjectFile(std::move(file), {}, true);
    default:
      break;
  }
  const auto elf = ElfReader::open(file.bytes());
  if (!elf) return fmt::format("is not an ELF file that can be read: it {}", describe(elf.error().code));
  const auto id = elf->build_id();
  const std::string found = id ? hex(*id) : std::string();
  if (found != build_id) {
    return build_id.empty() || found.empty()
               ? std::string("has changed since: its build id differs")
               : fmt::format("has changed since: its build id is {} now", found.substr(0, 12));
  }
  return ObjectFile(std::move(file), *elf, false);
}

FileModule ObjectFile::module_at(std::uint64_t address, Depth depth) const {
  if (bare_) return read_module(file_.bytes(), address, depth);
  const auto bytes = elf_.from_address(address);
  if (bytes) return read_module(*bytes, address, depth);
  FileModule out;
  out.damage = fmt::format("the file has nothing at address {:#x}", address);
  return out;
}

FileModule ObjectFile::read_module(Bytes bytes, std::uint64_t address, Depth depth) const {
  FileModule out;
  switch (image::identify(bytes)) {
    case image::BlobKind::fatbin:
      read_fatbin(bytes, false, depth, out);
      for (const std::uint64_t part : relocatable_parts(address)) {
        if (const auto part_bytes = elf_.from_address(part)) read_fatbin(*part_bytes, true, depth, out);
      }
      break;
    case image::BlobKind::fatbin_wrapper: {
      const std::uint64_t fatbin = pointer_at(address + offsetof(FatbinWrapper, fatbin));
      const auto behind = fatbin != 0 ? elf_.from_address(fatbin) : Result<Bytes>(Error{Errc::not_found});
      // A wrapper that points at a wrapper leads nowhere, perhaps for ever.
      if (behind && image::identify(*behind) == image::BlobKind::fatbin)
        return read_module(*behind, fatbin, depth);
      out.damage = "the fatbin's wrapper points nowhere";
      break;
    }
    case image::BlobKind::cubin:
    case image::BlobKind::ptx:
      read_bare_image(bytes, depth, out);
      break;
    default:
      out.damage = fmt::format("what lies at address {:#x} is neither a fatbin nor an image", address);
  }
  return out;
}

std::vector<std::uint64_t> ObjectFile::module_addresses() const {
  return bare_ ? std::vector<std::uint64_t>{0} : fatbins_of(kFatbinSections[0]);
}

std::vector<std::uint64_t> ObjectFile::fatbins_of(std::string_view name) const {
  std::vector<std::uint64_t> out;
  const auto section = elf_.section(name);
  if (!section) return out;
  each_fatbin(section->bytes,
              [&](const FatbinReader&, std::uint64_t at) { out.push_back(section->address + at); });
  return out;
}

FileModule ObjectFile::module_with_kernel(const std::string& kernel) const {
  if (file_.bytes().size() > kLargestSearch) return {};
  for (const std::uint64_t address : module_addresses()) {
    FileModule module = module_at(address);
    for (const FileImage& image : module.images) {
      if (std::find(image.kernels.begin(), image.kernels.end(), kernel) != image.kernels.end()) return module;
    }
  }
  return {};
}

FileModule ObjectFile::only_module_with_kernels() const {
  if (file_.bytes().size() > kLargestSearch) return {};
  FileModule found;
  for (const std::uint64_t address : module_addresses()) {
    FileModule module = module_at(address);
    if (module.images.empty() || !module.has_kernels()) continue;
    if (!found.images.empty()) return {};
    found = std::move(module);
  }
  return found;
}

std::uint64_t ObjectFile::pointer_at(std::uint64_t address) const {
  // Position-independent files store pointers as relative relocations: the addend is the address, the field
  // is zero.
  const auto relocations = elf_.section(".rela.dyn");
  if (relocations && relocations->type == SHT_RELA) {
    for (std::uint64_t at = 0; at + sizeof(Elf64_Rela) <= relocations->bytes.size();
         at += sizeof(Elf64_Rela)) {
      const auto entry = read_le<Elf64_Rela>(relocations->bytes, at);
      if (!entry || entry->r_offset != address) continue;
      const auto type = ELF64_R_TYPE(entry->r_info);
      if (type == R_X86_64_RELATIVE || type == R_AARCH64_RELATIVE)
        return static_cast<std::uint64_t>(entry->r_addend);
    }
  }
  const auto stored = elf_.at_address(address, sizeof(std::uint64_t));
  if (!stored) return 0;
  return read_le<std::uint64_t>(*stored, 0).value_or(0);
}

std::vector<std::uint64_t> ObjectFile::relocatable_parts(std::uint64_t fatbin) const {
  std::vector<std::uint64_t> parts;
  const auto wrappers = elf_.section(".nvFatBinSegment");
  if (!wrappers) return parts;
  for (std::uint64_t at = 0; at + sizeof(FatbinWrapper) <= wrappers->bytes.size();
       at += sizeof(FatbinWrapper)) {
    const auto wrapper = read_le<FatbinWrapper>(wrappers->bytes, at);
    if (!wrapper || wrapper->magic != image::kWrapperMagic || wrapper->version != 2) continue;
    const std::uint64_t here = wrappers->address + at;
    if (pointer_at(here + offsetof(FatbinWrapper, fatbin)) != fatbin) continue;
    std::uint64_t list = pointer_at(here + offsetof(FatbinWrapper, prelinked));
    for (; list != 0 && parts.size() < kMostParts; list += sizeof(std::uint64_t)) {
      const std::uint64_t part = pointer_at(list);
      if (part == 0) break;
      parts.push_back(part);
    }
    // nvcc 13 keeps the list in .bss and fills it by constructors: then every part in the file belongs to it.
    if (parts.empty()) parts = fatbins_of(kFatbinSections[1]);
  }
  return parts;
}

std::vector<ImageCount> ObjectFile::image_counts() const {
  std::vector<ImageCount> out;
  if (bare_) {
    for (const FileImage& image : module_at(0, Depth::headers).images)
      out.push_back({image.candidate, 1, image.bytes});
    return out;
  }
  for (const std::string_view name : kFatbinSections) {
    const auto section = elf_.section(name);
    if (!section) continue;
    each_fatbin(section->bytes, [&](FatbinReader fatbin, std::uint64_t) {
      for (auto entry = fatbin.next(); entry; entry = fatbin.next()) {
        // A relocatable cubin is raw material for the linker, no image that a driver takes.
        if (name == "__nv_relfatbin" && entry->kind != image::ImageKind::ptx) continue;
        const image::Candidate candidate{entry->kind, entry->arch, entry->isa};
        auto at = std::find_if(out.begin(), out.end(),
                               [&](const ImageCount& row) { return same_kind(row.candidate, candidate); });
        if (at == out.end()) at = out.insert(out.end(), {candidate, 0, 0});
        ++at->count;
        at->bytes += entry->uncompressed_size;
      }
    });
  }
  return out;
}

std::uint64_t ObjectFile::fatbin_count() const {
  if (bare_) return 1;
  std::uint64_t count = 0;
  for (const std::string_view name : kFatbinSections) {
    const auto section = elf_.section(name);
    if (section) each_fatbin(section->bytes, [&](const FatbinReader&, std::uint64_t) { ++count; });
  }
  return count;
}

std::string ObjectFile::symbol_at(std::uint64_t address) const {
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

bool ObjectFile::is_shared_library() const {
  const auto type = read_le<std::uint16_t>(file_.bytes(), offsetof(Elf64_Ehdr, e_type));
  return !bare_ && type && *type == ET_DYN && !elf_.section(".interp");
}

bool ObjectFile::has_relocatable_code() const {
  return !bare_ && static_cast<bool>(elf_.section(kFatbinSections[1]));
}

}  // namespace kshim::analysis
