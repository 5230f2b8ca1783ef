// SPDX-License-Identifier: Apache-2.0
#include "analyzer/model/image_contents.h"

#include <fmt/core.h>

#include <algorithm>

#include "kshim/image/cubin.h"
#include "kshim/image/decompress.h"
#include "kshim/image/fatbin.h"
#include "kshim/image/ptx.h"

namespace kshim::analysis {
namespace {

// ptxas signs its work: the note .note.nv.tkinfo holds "Cuda compilation tools, release 13.0, V13.0.88"
// (measured with CUDA 13.0; older toolkits write the same sentence).
image::Version toolkit_in_note(const image::CubinReader& cubin) {
  const auto note = cubin.elf().section(".note.nv.tkinfo");
  if (!note) return {};
  constexpr std::string_view kMarker = "release ";
  const std::string_view text = text_of(note->bytes);
  const std::size_t at = text.find(kMarker);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = text.substr(at + kMarker.size());
  return image::parse_version(rest.substr(0, rest.find_first_not_of("0123456789.")))
      .value_or(image::Version{});
}

bool each_cubin_kernel(Bytes clear, const std::function<bool(std::string_view)>& visit) {
  const auto cubin = image::CubinReader::open(clear);
  if (!cubin) return false;
  for (std::uint64_t cursor = 0;;) {
    const auto kernel = cubin->next_name(cursor);
    if (!kernel) return kernel.error().code == Errc::not_found;
    if (!visit(kernel->name)) return true;
  }
}

bool each_ptx_kernel(Bytes clear, const std::function<bool(std::string_view)>& visit) {
  const auto ptx = image::PtxReader::open(clear);
  if (!ptx) return false;
  for (std::uint64_t cursor = 0;;) {
    const auto kernel = ptx->next_brief(cursor);
    if (!kernel) return kernel.error().code == Errc::not_found;
    if (!visit(kernel->name)) return true;
  }
}

void read_contents(Bytes bytes, FileImage& out) {
  out.kernels_read = each_kernel_name(out.candidate.kind, bytes, [&](std::string_view name) {
    out.kernels.emplace_back(name);
    return true;
  });
  out.toolkit = toolkit_of(out.candidate.kind, bytes);
}

void read_payload(const image::Image& entry, FileImage& image, FileModule& out) {
  std::vector<std::byte> payload;
  const auto size = image::decompress(entry, payload);
  if (size) {
    read_contents(payload, image);
  } else {
    out.damage = fmt::format("the {} image {}", image::to_name(entry.kind, entry.arch).view(),
                             describe(size.error().code));
  }
}

}  // namespace

void read_fatbin(Bytes bytes, bool part, Depth depth, FileModule& out) {
  const auto opened = image::FatbinReader::open(bytes);
  if (!opened) {
    out.damage = fmt::format("the fatbin {}", describe(opened.error().code));
    return;
  }
  image::FatbinReader reader = *opened;
  auto entry = reader.next();
  for (; entry; entry = reader.next()) {
    if (part && entry->kind != image::ImageKind::ptx) continue;
    FileImage image;
    image.candidate = {entry->kind, entry->arch, entry->isa};
    image.compression = entry->compression;
    image.bytes = entry->uncompressed_size;
    if (depth == Depth::kernels) read_payload(*entry, image, out);
    // The relocatable parts of one architecture make one program: their kernels belong together.
    const auto same = std::find_if(out.images.begin(), out.images.end(), [&](const FileImage& other) {
      return part && other.candidate.kind == image.candidate.kind &&
             other.candidate.arch == image.candidate.arch;
    });
    if (same == out.images.end()) {
      out.images.push_back(std::move(image));
    } else {
      same->kernels.insert(same->kernels.end(), image.kernels.begin(), image.kernels.end());
      same->kernels_read = same->kernels_read && image.kernels_read;
      same->bytes += image.bytes;
    }
  }
  if (entry.error().code != Errc::not_found) {
    out.damage =
        fmt::format("the fatbin {} at offset {}", describe(entry.error().code), entry.error().offset);
  }
}

void read_bare_image(Bytes bytes, Depth depth, FileModule& out) {
  FileImage image;
  if (const auto cubin = image::CubinReader::open(bytes)) {
    image.candidate = {image::ImageKind::cubin, cubin->arch(), {}};
    image.bytes = cubin->elf().extent();
  } else if (const auto ptx = image::PtxReader::open(bytes)) {
    image.candidate = {image::ImageKind::ptx, ptx->target(), ptx->isa()};
    image.bytes = bytes.size();
  } else {
    out.damage = "the image is neither a cubin nor PTX";
    return;
  }
  if (depth == Depth::kernels) read_contents(bytes, image);
  out.images.push_back(std::move(image));
}

bool each_kernel_name(image::ImageKind kind, Bytes clear,
                      const std::function<bool(std::string_view)>& visit) {
  switch (kind) {
    case image::ImageKind::cubin:
      return each_cubin_kernel(clear, visit);
    case image::ImageKind::ptx:
      return each_ptx_kernel(clear, visit);
    case image::ImageKind::ltoir:
      break;
  }
  return false;
}

image::Version toolkit_of(image::ImageKind kind, Bytes clear) {
  if (kind != image::ImageKind::cubin) return {};
  const auto cubin = image::CubinReader::open(clear);
  return cubin ? toolkit_in_note(*cubin) : image::Version{};
}

}  // namespace kshim::analysis
