// SPDX-License-Identifier: Apache-2.0
#include "query/collect.h"

#include <elf.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <tuple>

#include "kshim/image/cubin.h"
#include "kshim/image/fatbin.h"
#include "kshim/image/payload.h"

namespace kshim::query {
namespace {

using image::FatbinReader;
using image::SectionRole;

constexpr std::uint64_t kAlignment = 8;  // of every fatbin seen
constexpr std::uint64_t kHeader = 16;    // of a fatbin
constexpr std::uint64_t kEntry = 64;     // of an image in it
constexpr std::uint64_t kWindow = std::uint64_t{256}
                                  << 10U;  // read at once where every byte counts: in the cache
constexpr std::uint64_t kMaxKept = std::uint64_t{8} << 20U;     // of the file in memory, at a time
constexpr std::uint64_t kMaxPadding = std::uint64_t{1} << 30U;  // zeros behind a fatbin
// cuFFT, the richest library seen, has 24,000 fatbins and 34,000 images.
constexpr std::size_t kMaxImages = std::size_t{1} << 19U;
constexpr std::size_t kMaxFatbins = std::size_t{1} << 19U;
// Read for what only began like a cubin: a hostile file has one at every step, with tables far away.
constexpr std::uint64_t kMaxMisread = std::uint64_t{256} << 20U;

constexpr std::uint64_t aligned(std::uint64_t at) noexcept {
  return (at + kAlignment - 1) & ~(kAlignment - 1);
}

}  // namespace

Collector::~Collector() { std::free(window_); }

Reason Collector::collect(Array<CodeRange>& ranges) noexcept {
  // Where ranges overlap, and in honest files they do not, the section that says more about its fatbins comes
  // first.
  std::sort(ranges.begin(), ranges.end(), [](const CodeRange& a, const CodeRange& b) {
    return std::tuple(a.begin, a.role, a.end) < std::tuple(b.begin, b.role, b.end);
  });
  std::uint64_t done = 0;
  for (CodeRange range : ranges) {
    range.begin = std::max(range.begin, done);
    if (range.role != SectionRole::data) range.begin = aligned(range.begin);
    if (range.begin >= range.end) continue;
    kept_from_ = range.begin;
    range.role == SectionRole::data ? search(range) : walk(range);
    file_.drop(kept_from_, range.end - kept_from_);
    if (reason_ != Reason::none) return reason_;
    done = range.end;
  }
  return file_.trouble();
}

void Collector::walk(const CodeRange& range) noexcept {
  const Bytes part = file_.bytes().first(static_cast<std::size_t>(range.end));
  std::uint64_t zeros = range.begin;  // where they begin
  for (std::uint64_t at = range.begin; at < range.end && reason_ == Reason::none;) {
    if (!file_.fetch(at, sizeof(std::uint64_t))) return;
    std::uint64_t word = 0;  // the last one may be cut off
    std::memcpy(&word, part.data() + at, std::min<std::uint64_t>(sizeof word, range.end - at));
    if (word == 0) {
      at += kAlignment;
      if (at - zeros >= kMaxPadding) fail(Reason::too_large);
    } else if (static_cast<std::uint32_t>(word) == image::kFatbinMagic) {
      at = zeros = add_fatbin(at, range);
    } else {
      fail(Reason::damaged);
    }
    if (at - kept_from_ >= kMaxKept) {
      file_.drop(kept_from_, at - kept_from_);
      kept_from_ = at;
    }
  }
}

void Collector::search(const CodeRange& range) noexcept {
  if (window_ == nullptr) window_ = static_cast<std::byte*>(std::malloc(kWindow));
  if (window_ == nullptr) return fail(Reason::no_memory);
  constexpr std::uint64_t kStart = 20;  // what find_fatbin_or_cubin() compares
  std::uint64_t from = range.begin;     // of the window in the file
  std::uint64_t size = 0;
  for (std::uint64_t at = range.begin; at < range.end && reason_ == Reason::none;) {
    const bool is_used_up = at + kStart > from + size && from + size < range.end;
    if (size == 0 || is_used_up) {
      from = at;
      size = std::min(range.end - at, kWindow);
      if (!file_.copy(from, size, window_)) return;
    }
    const Bytes window(window_, static_cast<std::size_t>(size));
    const std::uint64_t found = image::find_fatbin_or_cubin(window, at - from);
    if (found < size)
      at = read_le<std::uint32_t>(window, found).value_or(0) == image::kFatbinMagic
               ? add_fatbin(from + found, range)
               : add_cubin(from + found, range);
    else  // a start may lie across the window's end
      at = from + size < range.end ? std::max(at + 1, from + size - (kStart - 1)) : range.end;
    if (at - kept_from_ >= kMaxKept) {
      file_.drop(kept_from_, at - kept_from_);
      kept_from_ = at;
    }
  }
}

std::uint64_t Collector::add_fatbin(std::uint64_t at, const CodeRange& range) noexcept {
  const bool data = range.role == SectionRole::data;
  if (!file_.fetch(at, kHeader)) return range.end;
  const auto opened = FatbinReader::open_damaged(
      file_.bytes().subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(range.end - at)));
  if (!opened) {
    if (!data) fail(Reason::damaged);
    return at + (data ? 1 : kAlignment);
  }
  FatbinReader reader = *opened;
  const auto first = static_cast<std::uint32_t>(out_.images.size());
  for (;;) {
    if (!file_.fetch(at + reader.whole(), kEntry)) return range.end;
    const auto entry = reader.next();
    if (entry) {
      if (!add_image(*entry)) return range.end;
      if (at + reader.whole() - kept_from_ >= kMaxKept) {
        file_.drop(kept_from_, at + reader.whole() - kept_from_);
        kept_from_ = at + reader.whole();
      }
      continue;
    }
    const Errc error = entry.error().code;
    if (error == Errc::not_found) break;
    if (error == Errc::unknown_kind) {
      out_.unknown_kind = true;  // the walk goes on behind it
      continue;
    }
    if (data && out_.images.size() == first) return at + 1;
    fail(Reason::damaged);
    return range.end;
  }
  add_group(at, first, range.role);
  const std::uint64_t end = at + reader.size();  // in data, the next one may begin anywhere
  return std::max(at + kAlignment, data ? end : aligned(end));
}

std::uint64_t Collector::add_cubin(std::uint64_t at, const CodeRange& range) noexcept {
  const Bytes rest =
      file_.bytes().subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(range.end - at));
  if (!file_.fetch(at, sizeof(Elf64_Ehdr))) return range.end;
  const auto header = read_le<Elf64_Ehdr>(rest, 0);
  if (!header) return at + 1;
  const auto end_of = [](std::uint64_t offset, std::uint64_t count, std::uint64_t size) {
    return offset > image::kPayloadCeiling ? offset : offset + count * size;
  };
  const std::uint64_t tables = std::max(end_of(header->e_shoff, header->e_shnum, sizeof(Elf64_Shdr)),
                                        end_of(header->e_phoff, header->e_phnum, sizeof(Elf64_Phdr)));
  if (tables > rest.size() || tables > image::kPayloadCeiling) return at + 1;
  if (!file_.fetch(at, tables)) return range.end;
  const auto elf = image::ElfReader::open(rest);
  const std::uint64_t size = elf ? elf->extent() : tables;
  if (size > image::kPayloadCeiling) return at + 1;
  if (!file_.fetch(at, size)) return range.end;
  const auto cubin = image::CubinReader::open(rest);
  if (!cubin) {
    misread_ += size;
    if (misread_ > kMaxMisread) fail(Reason::too_large);
    return misread_ > kMaxMisread ? range.end : at + 1;
  }
  image::Image entry;
  entry.kind = image::ImageKind::cubin;
  entry.arch = cubin->arch();
  entry.uncompressed_size = size;
  entry.payload = rest.first(static_cast<std::size_t>(size));
  const auto first = static_cast<std::uint32_t>(out_.images.size());
  if (!add_image(entry)) return range.end;
  add_group(at, first, range.role);
  return at + size;
}

bool Collector::add_image(const image::Image& entry) noexcept {
  if (out_.images.size() >= kMaxImages) {
    fail(Reason::too_large);
    return false;
  }
  CodeImage image;
  image.candidate = {entry.kind, entry.arch, entry.isa};
  image.compression = entry.compression;
  image.offset = static_cast<std::uint64_t>(entry.payload.data() - file_.bytes().data());
  image.stored = entry.payload.size();
  image.clear = entry.uncompressed_size;
  if (out_.images.push(image)) return true;
  fail(Reason::no_memory);
  return false;
}

void Collector::add_group(std::uint64_t at, std::uint32_t first, SectionRole role) noexcept {
  const std::uint32_t count = static_cast<std::uint32_t>(out_.images.size()) - first;
  if (parts_.size() + out_.modules.size() >= kMaxFatbins) return fail(Reason::too_large);
  CodeModule module;
  module.offset = at;
  module.first = first;
  module.count = count;
  const bool kept =
      role == SectionRole::relocatable ? parts_.push({at, first, count}) : out_.modules.push(module);
  if (!kept) fail(Reason::no_memory);
}

}  // namespace kshim::query
