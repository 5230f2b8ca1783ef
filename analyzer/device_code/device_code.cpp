// SPDX-License-Identifier: Apache-2.0
#include "analyzer/device_code/device_code.h"

#include <elf.h>

#include "analyzer/device_code/device_code_host.h"
#include "analyzer/device_code/mapped_file.h"
#include "kshim/image/fatbin_search.h"
#include "kshim/image/ptx.h"

namespace kshim::device_code {
namespace {

using image::BlobKind;

void add_bare(Bytes file, const image::Candidate& candidate, std::uint64_t size, bool relocatable,
              DeviceCode& out) {
  CodeImage image;
  image.candidate = candidate;
  image.relocatable = relocatable;
  image.bytes = size;
  image.payload = file.first(static_cast<std::size_t>(size));
  out.images.push_back(image);
  out.modules.push_back({.first = 0, .count = 1, .offset = 0, .parts = {}});
}

void add_cubin(Bytes file, DeviceCode& out) {
  const auto cubin = image::CubinReader::open(file);
  if (!cubin) {
    CodeCollector(file, out).damage(cubin.error().offset,
                                    fmt::format("the cubin {}", describe(cubin.error().code)));
    return;
  }
  add_bare(file, {image::ImageKind::cubin, cubin->arch(), {}}, cubin->elf().extent(),
           cubin->elf().type() == ET_REL, out);
}

void add_ptx(Bytes file, DeviceCode& out) {
  // A text without .target is no PTX, whatever its first word is.
  if (const auto ptx = image::PtxReader::open(file))
    add_bare(file, {image::ImageKind::ptx, ptx->target(), ptx->isa()}, file.size(), false, out);
}

/// LTO-IR by itself, as `nvcc -ltoir` writes it: behind the magic, at 26, the number of -arch times ten; a
/// header longer than 40 bytes (at 16) with 0x10020 at 32 for an `a`. Measured with nvcc 13.0; nothing there
/// tells `f`. LLVM bitcode, the other form, is not NVIDIA's alone and names no architecture.
void add_ltoir(Bytes file, DeviceCode& out) {
  constexpr std::uint32_t kNvvmMagic = 0x7f4e43ed;
  const auto magic = read_le<std::uint32_t>(file, 0);
  const auto number = read_le<std::uint16_t>(file, 26);
  if (!magic || *magic != kNvvmMagic || !number) return;
  image::Arch arch;
  arch.cc = image::ComputeCapability::from_number(*number / 10U);
  if (read_le<std::uint32_t>(file, 16).value_or(0) > 40 &&
      read_le<std::uint32_t>(file, 32).value_or(0) == 0x10020)
    arch.suffix = image::Suffix::a;
  add_bare(file, {image::ImageKind::ltoir, arch, {}}, file.size(), false, out);
}

/// False for anything but an image.
bool add_by_itself(BlobKind kind, Bytes bytes, DeviceCode& out) {
  switch (kind) {
    case BlobKind::cubin:
      add_cubin(bytes, out);
      return true;
    case BlobKind::ptx:
      add_ptx(bytes, out);
      return true;
    case BlobKind::ltoir:
      add_ltoir(bytes, out);
      return true;
    default:
      return false;
  }
}

using image::FatbinReader;

constexpr std::uint64_t kAlignment = 8;  // of fatbins in their own sections; data may hold them anywhere
// cuFFT, the richest library seen, has 24,000 fatbins and 34,000 images. A hostile file of 1 GB could have 60
// million.
constexpr std::size_t kMaxImages = std::size_t{1} << 22;
constexpr std::size_t kMaxFatbins = std::size_t{1} << 22;
constexpr std::size_t kMaxDamage = 64;
// All sections of a cubin are looked at, and cubins of a hostile file share them. ONNX Runtime's 189 have
// 7,000.
constexpr std::uint64_t kMaxCubinSections = std::uint64_t{1} << 24;
// Words `.version` that are no PTX's, beside one for each 4 KiB.
constexpr std::uint64_t kMaxPtxMisses = 4096;
// Tools that take code out of a library leave zeros in its place, but a library has no more than 2 GiB. A
// hole of a terabyte, which takes no room on a disk, would be walked through for an hour.
constexpr std::uint64_t kMaxPadding = std::uint64_t{1} << 30;

constexpr std::uint64_t aligned(std::uint64_t at) { return (at + kAlignment - 1) & ~(kAlignment - 1); }

/// A small payload may unpack to 32,000 times its size, and a file may hold many of them: what a file costs
/// is to depend on its size. Large tables of zeros are in real cubins.
void leave_bombs_packed(DeviceCode& code) {
  constexpr std::uint64_t kMax = std::uint64_t{4} << 30;
  constexpr std::uint64_t kMaxRatio = 200;
  std::uint64_t clear = 0;
  std::uint64_t stored = 0;
  for (const CodeImage& image : code.images) {
    clear += std::min(image.bytes, kMax);
    stored += image.payload.size();
  }
  if (clear <= kMax || clear / kMaxRatio <= stored) return;
  for (CodeImage& image : code.images) image.left_packed = image.bytes / kMaxRatio > image.payload.size();
}

}  // namespace

DeviceCode find_device_code(Bytes file) {
  DeviceCode out;
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text_of(file).starts_with(kByteOrderMark)) return read_device_code(file, kByteOrderMark.size());
  const BlobKind kind = image::identify(file);
  if (add_by_itself(kind, file, out)) return out;
  switch (kind) {
    case BlobKind::fatbin:
      // One or several behind each other, as in their section.
      CodeCollector(file, out).collect({{0, file.size(), RangeKind::fatbins}});
      break;
    case BlobKind::fatbin_wrapper:
      // Its pointer is an address in a process that is no more. What it pointed at may stand behind it.
      CodeCollector(file, out).collect({{0, file.size(), RangeKind::data}});
      break;
    case BlobKind::host_elf:
      find_in_elf(file, out);
      break;
    default:
      find_in_pe(file, out);
  }
  leave_bombs_packed(out);
  return out;
}

DeviceCode search_device_code(Bytes file) {
  DeviceCode out;
  CodeCollector(file, out).collect({{0, file.size(), RangeKind::foreign}});
  // There is no host file whose runtime would load other modules than these.
  for (CodeModule& module : out.modules) module.embedded = false;
  leave_bombs_packed(out);
  return out;
}

std::optional<std::size_t> find_module(const DeviceCode& code, std::uint64_t offset) {
  const auto at = std::ranges::lower_bound(code.modules, offset, {}, &CodeModule::offset);
  if (at == code.modules.end() || at->offset != offset) return std::nullopt;
  return static_cast<std::size_t>(at - code.modules.begin());
}

DeviceCode read_device_code(Bytes file, std::uint64_t offset) {
  DeviceCode out;
  if (offset >= file.size()) return out;
  Bytes bytes = file.subspan(static_cast<std::size_t>(offset));
  const BlobKind kind = image::identify(bytes);
  if (kind == BlobKind::fatbin) {
    CodeCollector(file, out).collect_one(offset);
    return out;
  }
  // A text in a program's data ends at its NUL.
  if (kind == BlobKind::ptx) bytes = bytes.first(std::min(bytes.size(), text_of(bytes).find('\0')));
  add_by_itself(kind, bytes, out);
  for (CodeImage& image : out.images) image.offset += offset;
  for (CodeModule& module : out.modules) module.offset += offset;
  for (Damage& damage : out.damage) damage.offset += offset;
  return out;
}

void CodeCollector::host_damage(std::uint64_t offset, std::string what) {
  damage(offset, std::move(what), nullptr, Damage::Of::host);
}

void CodeCollector::damage(std::uint64_t offset, std::string what, CodeModule* module, Damage::Of of) {
  offset = std::min<std::uint64_t>(offset, file_.size());  // what is missing is missing at the end
  if (out_.damage.size() < kMaxDamage) {
    out_.damage.push_back({offset, std::move(what), of});
  } else if (out_.damage.size() == kMaxDamage) {
    out_.damage.push_back({offset, "more is damaged than is listed here", of});
  }
  if (module != nullptr && module->damage == 0)
    module->damage = static_cast<std::uint32_t>(out_.damage.size());
}

void CodeCollector::collect(std::vector<CodeRange> ranges) {
  // Where ranges overlap, and in honest files they do not, the section that says more about its fatbins comes
  // first.
  std::ranges::sort(ranges, [](const CodeRange& a, const CodeRange& b) {
    return std::tuple(a.begin, a.kind, a.end) < std::tuple(b.begin, b.kind, b.end);
  });
  std::uint64_t done = 0;
  for (CodeRange range : ranges) {
    range.begin = std::max(range.begin, done);
    if (!is_search(range.kind)) range.begin = aligned(range.begin);
    range.end = std::min<std::uint64_t>(range.end, file_.size());
    if (range.begin >= range.end) continue;
    is_search(range.kind) ? search(range) : walk(range);
    done = range.end;
  }
}

void CodeCollector::walk(const CodeRange& range) {
  const Bytes part = file_.first(static_cast<std::size_t>(range.end));
  bool said = false;
  std::uint64_t zeros = range.begin;  // where they begin
  for (std::uint64_t at = range.begin; at + sizeof(std::uint64_t) <= range.end;) {
    const std::uint64_t word = read_le<std::uint64_t>(part, at).value_or(0);
    if (word != 0) zeros = at + kAlignment;
    if (at - std::min(zeros, at) >= kMaxPadding) {
      damage(at, fmt::format("{} GiB of zeros stand behind a fatbin: what comes later is not looked at",
                             kMaxPadding >> 30U));
      break;
    }
    if (static_cast<std::uint32_t>(word) == image::kFatbinMagic) {
      at = zeros = add_fatbin(at, range);
      continue;
    }
    if (word != 0 && !said) {
      said = true;  // once a section: the search below goes on behind it
      damage(at, "bytes that are no fatbin stand among the fatbins");
    }
    at = word == 0 ? at + kAlignment : image::find_fatbin(part, at);
  }
}

void CodeCollector::search(const CodeRange& range) {
  for (std::uint64_t at = range.begin; at < range.end;) {
    const Stretch data = data_behind(file_, at);
    if (data.begin >= range.end) break;
    at = data.begin;  // a hole begins and ends where blocks do: nothing of ours lies across its end
    const Bytes part = file_.first(static_cast<std::size_t>(std::min(range.end, data.end)));
    const std::uint64_t found = range.kind == RangeKind::foreign ? image::find_device_image(part, at)
                                                                 : image::find_fatbin_or_cubin(part, at);
    out_.searched += std::min<std::uint64_t>(found, part.size()) - at;
    if (found >= part.size()) {
      at = part.size();
      continue;
    }
    switch (part[static_cast<std::size_t>(found)]) {
      case std::byte{0x7f}:
        at = add_cubin(found, range);
        break;
      case std::byte{'.'}:
        at = add_ptx(found, range);
        break;
      default:
        at = add_fatbin(found, range);
    }
  }
}

std::uint64_t CodeCollector::add_fatbin(std::uint64_t at, const CodeRange& range) {
  const bool relocatable = range.kind == RangeKind::relocatable;
  const auto behind = [&](std::uint64_t size) {
    const std::uint64_t end = at + std::max<std::uint64_t>(size, 1);
    return is_search(range.kind) ? end : std::max(at + kAlignment, aligned(end));
  };
  const Bytes rest = file_.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(range.end - at));
  const auto opened = FatbinReader::open_damaged(rest);
  if (!opened) {
    if (!is_search(range.kind))
      damage(at + opened.error().offset, fmt::format("a fatbin {}", describe(opened.error().code)));
    return behind(0);
  }
  FatbinReader reader = *opened;
  CodeModule group;
  group.first = static_cast<std::uint32_t>(out_.images.size());
  group.offset = at;
  group.embedded = is_search(range.kind);
  for (;;) {
    const auto entry = reader.next();
    if (entry) {
      if (add_image(*entry, group, relocatable)) continue;
      break;
    }
    const Error error = entry.error();
    if (error.code == Errc::not_found) break;
    if (error.code == Errc::unknown_kind) {
      note_kind(reader.kind(), at + error.offset, group);  // the walk goes on behind it
      continue;
    }
    if (is_search(range.kind) && out_.images.size() == group.first) return behind(0);
    damage(at + error.offset, fmt::format("a fatbin {}", describe(error.code)), &group);
    add_group(std::move(group), relocatable);
    return behind(reader.whole());
  }
  add_group(std::move(group), relocatable);
  return behind(reader.size());
}

void CodeCollector::note_kind(std::uint16_t kind, std::uint64_t at, CodeModule& group) {
  const auto [known, first] = unknown_kinds_.try_emplace(kind, 0);
  if (first) {
    damage(at, fmt::format("a fatbin holds an image of kind {:#x}, which this kshim does not know", kind),
           nullptr, Damage::Of::unknown_kind);
    known->second = static_cast<std::uint32_t>(out_.damage.size());
  }
  if (group.damage == 0) group.damage = known->second;
}

std::uint64_t CodeCollector::add_cubin(std::uint64_t at, const CodeRange& range) {
  const Bytes rest = file_.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(range.end - at));
  const auto elf = image::ElfReader::open(rest);
  if (!elf || cubin_sections_ > kMaxCubinSections) return at + 1;
  cubin_sections_ += elf->section_count();
  const auto cubin = image::CubinReader::open(rest);
  if (!cubin) return at + 1;
  const std::uint64_t size = cubin->elf().extent();
  CodeModule module;
  module.first = static_cast<std::uint32_t>(out_.images.size());
  module.offset = at;
  module.embedded = true;
  image::Image entry;
  entry.kind = image::ImageKind::cubin;
  entry.arch = cubin->arch();
  entry.uncompressed_size = size;
  entry.payload = rest.first(static_cast<std::size_t>(size));
  if (!add_image(entry, module, false)) return range.end;
  add_module(std::move(module), false);
  return at + size;
}

std::uint64_t CodeCollector::add_ptx(std::uint64_t at, const CodeRange& range) {
  constexpr std::size_t kHead = 4096;  // version and target are its first words
  const Bytes rest = file_.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(range.end - at));
  // A text full of such words costs no more than its size allows.
  if (ptx_misses_ > kMaxPtxMisses + file_.size() / kHead) return at + 1;
  if (!image::PtxReader::open(rest.first(std::min(rest.size(), kHead)))) {
    ++ptx_misses_;
    return at + 1;
  }
  const auto in_text = [](std::byte each) {
    const auto c = std::to_integer<unsigned char>(each);
    return (c >= ' ' && c < 0x7f) || (c >= '\t' && c <= '\r');
  };
  const Bytes text =
      rest.first(static_cast<std::size_t>(std::ranges::find_if_not(rest, in_text) - rest.begin()));
  const auto ptx = image::PtxReader::open(text);
  if (!ptx) return at + 1;
  CodeModule module;
  module.first = static_cast<std::uint32_t>(out_.images.size());
  module.offset = at;
  module.embedded = true;
  image::Image entry;
  entry.kind = image::ImageKind::ptx;
  entry.arch = ptx->target();
  entry.isa = ptx->isa();
  entry.uncompressed_size = text.size();
  entry.payload = text;
  if (!add_image(entry, module, false)) return range.end;
  add_module(std::move(module), false);
  return at + text.size();
}

bool CodeCollector::add_image(const image::Image& entry, CodeModule& group, bool relocatable) {
  if (out_.images.size() >= kMaxImages) {
    damage(group.offset + entry.offset,
           fmt::format("more than {} images: the rest is not listed", kMaxImages), &group);
    return false;
  }
  CodeImage image;
  image.candidate = {entry.kind, entry.arch, entry.isa};
  image.compression = entry.compression;
  image.debug = entry.debug;
  image.relocatable = relocatable;
  image.flags = entry.flags;
  image.offset = group.offset + entry.offset;
  image.bytes = entry.uncompressed_size;
  image.payload = entry.payload;
  out_.images.push_back(image);
  return true;
}

void CodeCollector::add_group(CodeModule group, bool relocatable) {
  ++out_.fatbins;
  add_module(std::move(group), relocatable);
}

void CodeCollector::add_module(CodeModule group, bool relocatable) {
  group.count = static_cast<std::uint32_t>(out_.images.size()) - group.first;
  if (parts_.size() + out_.modules.size() >= kMaxFatbins) return;
  if (relocatable) {
    parts_.push_back({group.offset, group.first, group.count, group.damage});
  } else {
    out_.modules.push_back(std::move(group));
  }
}

}  // namespace kshim::device_code
