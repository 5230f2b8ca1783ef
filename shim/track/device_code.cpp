// SPDX-License-Identifier: Apache-2.0
#include "track/device_code.h"

#include <algorithm>
#include <cstring>

#include "guest/file_copy.h"
#include "guest/safe_memory.h"
#include "guest/text_buffer.h"
#include "kshim/base/hash.h"
#include "kshim/image/cubin.h"
#include "kshim/image/fatbin.h"
#include "kshim/image/ptx.h"
#include "kshim/image/relocatable.h"
#include "track/fatbin_registry.h"

namespace kshim::shim {
namespace {

constexpr std::uint64_t kMaxBlob = 1ULL << 30U;
constexpr std::uint64_t kMaxCopied = 16ULL << 20U;
constexpr std::size_t kMaxPrelinked = 4096;
constexpr std::size_t kHead = 4096;  // enough to identify the format

/// Bytes from an address on, as far as they can be read. A file is mapped as a whole; of a blob elsewhere
/// each page is asked for once.
class ReadableRange {
 public:
  ReadableRange(const LoadedObject& object, std::uintptr_t address) noexcept
      : start_(address), mapped_(object ? object.elf.bytes_from(address) : Bytes()), in_file_(object) {}
  /// The first `size` bytes, or fewer; of a file all that follow.
  Bytes first(std::uint64_t size) noexcept {
    if (in_file_) return mapped_;
    const auto wanted = static_cast<std::size_t>(std::min(size, kMaxBlob));
    if (wanted > known_ && !ended_) {
      const std::uintptr_t from = start_ + known_;
      const std::size_t whole_pages = (from + (wanted - known_) + kPage - 1) / kPage * kPage - from;
      const std::size_t more = readable_bytes(from, whole_pages);
      ended_ = more != whole_pages;
      known_ += more;
    }
    return {reinterpret_cast<const std::byte*>(start_), std::min(wanted, known_)};
  }

 private:
  static constexpr std::size_t kPage = 4096;
  std::uintptr_t start_;
  Bytes mapped_;
  std::size_t known_ = 0;
  bool in_file_;
  bool ended_ = false;
};

void add(DeviceCode& out, const image::Candidate& candidate) noexcept {
  for (const image::Candidate& known : out.candidates())
    if (known.kind == candidate.kind && known.arch == candidate.arch && known.isa == candidate.isa) return;
  if (out.image_count < DeviceCode::kMaxImages) out.images[out.image_count++] = candidate;
}

void add_fatbin(Bytes bytes, DeviceCode& out) noexcept {
  const auto reader = image::FatbinReader::open(bytes);
  if (!reader) return;
  image::FatbinReader walk = *reader;
  // An entry of an unknown kind is passed over; a damaged one ends the walk by itself.
  for (;;) {
    const auto found = walk.next();
    if (found)
      add(out, {found->kind, found->arch, found->isa});
    else if (found.error().code != Errc::unknown_kind)
      return;
  }
}

/// The size a container states, from its first bytes; 0 for PTX text, which ends with a NUL.
std::uint64_t stated_size(image::BlobKind kind, ReadableRange& reach) noexcept {
  if (kind == image::BlobKind::fatbin) {
    const Bytes header = reach.first(16);
    const auto header_size = read_le<std::uint16_t>(header, 6);
    const auto entries = read_le<std::uint64_t>(header, 8);
    return header_size && entries ? std::min<std::uint64_t>(*entries, kMaxBlob) + *header_size : 0;
  }
  if (kind != image::BlobKind::cubin) return 0;
  // An ELF image ends behind its tables (nvcc) or behind its sections (NVRTC). The reader needs all of them,
  // so the window doubles until it extends past the image.
  constexpr std::uint64_t kProgramHeader = 56;
  constexpr std::uint64_t kSectionHeader = 64;
  const Bytes header = reach.first(64);
  const auto programs = read_le<std::uint64_t>(header, 32);
  const auto sections = read_le<std::uint64_t>(header, 40);
  const auto program_count = read_le<std::uint16_t>(header, 56);
  const auto section_count = read_le<std::uint16_t>(header, 60);
  if (!programs || !sections || !program_count || !section_count) return 0;
  if (*programs > kMaxBlob || *sections > kMaxBlob) return 0;
  std::uint64_t view =
      std::max(*programs + *program_count * kProgramHeader, *sections + *section_count * kSectionHeader);
  for (; view <= kMaxBlob; view *= 2) {
    const Bytes bytes = reach.first(view);
    const auto elf = image::ElfReader::open(bytes);
    if (!elf) return 0;
    const std::uint64_t extent = elf->extent();
    if (extent < bytes.size() || bytes.size() < view) return extent;
  }
  return 0;
}

std::uint64_t text_size(ReadableRange& reach) noexcept {
  constexpr std::uint64_t kStep = 8192;  // pages are asked for two at a time
  for (std::uint64_t done = 0; done < kMaxBlob; done += kStep) {
    const Bytes bytes = reach.first(done + kStep);
    if (bytes.size() <= done) return bytes.size();
    const std::size_t here = std::min<std::size_t>(bytes.size() - done, kStep);
    const void* end = std::memchr(bytes.data() + done, 0, here);
    if (end != nullptr) return static_cast<std::uint64_t>(static_cast<const std::byte*>(end) - bytes.data());
  }
  return kMaxBlob;
}

void read_images(image::BlobKind kind, Bytes bytes, DeviceCode& out) noexcept {
  if (kind == image::BlobKind::fatbin) {
    out.packaging = image::Packaging::fatbin;
    add_fatbin(bytes, out);
  } else if (kind == image::BlobKind::cubin) {
    if (const auto cubin = image::CubinReader::open(bytes)) {
      add(out, {image::ImageKind::cubin, cubin->arch(), {}});
      out.toolkit = cubin->toolkit();
    }
  } else if (kind == image::BlobKind::ptx) {
    if (const auto ptx = image::PtxReader::open(bytes))
      add(out, {image::ImageKind::ptx, ptx->target(), ptx->isa()});
  }
}

/// Version 2: the parts that relocatable device code was linked from; the PTX may be only in them.
void add_prelinked(std::uintptr_t array, DeviceCode& out) noexcept {
  DeviceCode part;
  const auto each_part = [&](const auto& visit) {
    for (std::size_t i = 0; i < kMaxPrelinked; ++i) {
      std::uintptr_t address = 0;
      if (!read_memory(array + i * sizeof address, &address, sizeof address) || address == 0) return;
      ReadableRange reach(find_object_in_use(address), address);
      part.image_count = 0;
      add_fatbin(reach.first(stated_size(image::BlobKind::fatbin, reach)), part);
      if (!visit(part.candidates())) return;
    }
  };
  image::Arch levels[DeviceCode::kMaxImages];
  std::size_t count = 0;
  each_part([&](std::span<const image::Candidate> images) {
    for (const image::Candidate& image : images)
      if (image.kind == image::ImageKind::ptx && count < std::size(levels) &&
          std::find(levels, levels + count, image.arch) == levels + count)
        levels[count++] = image.arch;
    return true;
  });
  std::sort(levels, levels + count);
  image::each_linkable_ptx(std::span(levels, count), each_part,
                           [&](std::size_t, std::size_t number) { add(out, part.images[number]); });
}

/// `next`: the reader's step from name to name.
template <class Next>
void collect_names(Next&& next, KernelNames& out) noexcept {
  for (std::uint64_t cursor = 0;;) {
    const auto kernel = next(cursor);
    if (!kernel) {
      out.complete = kernel.error().code == Errc::not_found && out.count != 0;
      return;
    }
    if (out.count == KernelNames::kMax) return;
    out.names[out.count++] = kernel->name;
    out.total = out.count;
  }
}

/// All of a small image. Of a large one its size, its beginning, its section table (which comes last) and
/// some blocks in between.
std::uint64_t sample_hash(image::BlobKind kind, Bytes bytes) noexcept {
  constexpr std::size_t kEnds = 4096;
  constexpr std::size_t kBlocks = 16;
  constexpr std::size_t kBlock = 64;
  if (bytes.size() <= kHashedInFull) return content_hash(bytes);
  const std::uint64_t size = bytes.size();
  std::uint64_t hash = key_hash(std::as_bytes(std::span(&size, 1)));
  const auto add = [&hash](Bytes part) {
    const std::uint64_t pair[] = {hash, content_hash(part)};
    hash = key_hash(std::as_bytes(std::span(pair)));
  };
  add(bytes.first(kEnds));
  add(bytes.last(kEnds));
  if (kind == image::BlobKind::cubin)
    if (const auto table = read_le<std::uint64_t>(bytes, 40); table && *table < size)
      add(bytes.subspan(static_cast<std::size_t>(*table),
                        std::min<std::size_t>(kEnds, static_cast<std::size_t>(size - *table))));
  for (std::size_t i = 1; i <= kBlocks; ++i) add(bytes.subspan(bytes.size() / (kBlocks + 1) * i, kBlock));
  return hash == 0 ? 1 : hash;
}

}  // namespace

void DeviceCode::list(ArchList& out) const noexcept {
  for (const image::Candidate& candidate : candidates()) {
    const image::ShortName name = to_name(candidate.kind, candidate.arch);
    bool known = false;
    for (std::size_t i = 0; i < out.count; ++i) known = known || out.names[i].view() == name.view();
    if (known || out.count == ArchList::kMax) continue;
    out.names[out.count] = name;
    out.views[out.count] = out.names[out.count].view();
    ++out.count;
  }
}

LoadResult load_result(int code) noexcept {
  switch (code) {
    case 0:
      return LoadResult::loaded;
    case 3:    // not initialized
    case 4:    // no longer initialized
    case 201:  // no context
    case 709:  // the context was destroyed
      return LoadResult::refused;
    default:
      return LoadResult::failed;
  }
}

void examine(const CallArgs& facts, DeviceCode& out) noexcept {
  const LoadResult result = load_result(facts.code);
  if (facts.file != nullptr)
    examine_file(facts.file, result, out);
  else if (facts.image != 0)
    examine_memory(facts.image, result, out);
}

/// Bytes that are not an image are the same if they begin alike: a driver reads no more of them.
std::uint64_t hash_of_beginning(ReadableRange& reach) noexcept {
  constexpr std::size_t kBeginning = 64;
  const Bytes bytes = reach.first(kBeginning);
  return bytes.empty() ? 0 : content_hash(bytes.first(std::min(bytes.size(), kBeginning)));
}

void examine_memory(std::uintptr_t image, LoadResult result, DeviceCode& out) noexcept {
  out.address = image;
  LoadedObject object = find_object_in_use(image);
  image::FatbinWrapper wrapper{};
  ReadableRange reach(object, image);
  if (result == LoadResult::refused && !object) {
    out.sample = hash_of_beginning(reach);
    return;
  }
  // A file that ends before a wrapper could end may still begin with an image.
  const Bytes start = reach.first(kHead);
  if (start.size() >= sizeof wrapper) std::memcpy(&wrapper, start.data(), sizeof wrapper);
  if (wrapper.magic == image::kWrapperMagic) {
    out.wrapped = true;
    out.address = wrapper.fatbin;
    object = find_object_in_use(out.address);
    reach = ReadableRange(object, out.address);
  }
  if (object) {
    out.object = object.identity;
    out.offset = object.offset_of(out.address);
  }
  Bytes bytes = reach.first(kHead);
  if (bytes.empty()) return;
  const image::BlobKind kind = image::identify(bytes.first(std::min(bytes.size(), kHead)));
  out.kind = kind;
  out.size = kind == image::BlobKind::ptx ? text_size(reach) : stated_size(kind, reach);
  bytes = reach.first(out.size);
  bytes = bytes.first(static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), out.size)));
  read_images(kind, bytes, out);
  if (out.wrapped && wrapper.version == 2 && wrapper.prelinked != 0) add_prelinked(wrapper.prelinked, out);
  // Constant data of a file is identified by its place, and so is code that a runtime has registered.
  if (object && (out.wrapped || !object.elf.is_writable(out.address))) return;
  if (bytes.empty())
    out.sample = hash_of_beginning(reach);
  else
    out.sample = out.hash = sample_hash(kind, bytes);
}

Bytes loose_bytes(const DeviceCode& code) noexcept {
  if (!code.is_loose()) return {};
  ReadableRange reach({}, code.address);
  const Bytes bytes = reach.first(code.size);
  return bytes.first(std::min(bytes.size(), static_cast<std::size_t>(code.size)));
}

void hash_in_full(DeviceCode& code) noexcept {
  if (code.is_loose() && code.size > kHashedInFull) code.hash = content_hash(loose_bytes(code));
}

std::uint64_t DeviceCode::key() const noexcept {
  const std::uint64_t parts[] = {object, object != 0 ? offset : sample != 0 ? 0 : address, sample};
  return key_hash(std::as_bytes(std::span(parts)));
}

void loose_kernels(const DeviceCode& code, KernelNames& out) noexcept {
  const Bytes bytes = loose_bytes(code);
  if (const auto cubin = image::CubinReader::open(bytes)) {
    collect_names([&](std::uint64_t& cursor) { return cubin->next_name(cursor); }, out);
  } else if (const auto ptx = image::PtxReader::open(bytes)) {
    collect_names([&](std::uint64_t& cursor) { return ptx->next_brief(cursor); }, out);
  }
}

void examine_file(const char* path, LoadResult result, DeviceCode& out) noexcept {
  const std::string_view name = readable_text(path);
  if (name.empty()) return;
  out.object = identity_of_file(name);
  if (result == LoadResult::refused) return;
  const FileCopy head(path, kHead);
  const image::BlobKind kind = image::identify(head.bytes());
  out.size = head.size();
  // PTX says what it is for in its first lines. A cubin that has loaded, the command reads.
  if (result == LoadResult::loaded && kind != image::BlobKind::fatbin) {
    if (kind == image::BlobKind::ptx) read_images(kind, head.bytes(), out);
    return;
  }
  const FileCopy whole(path, kMaxCopied);
  read_images(kind, whole.bytes(), out);
}

}  // namespace kshim::shim
