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
image::Version toolkit_of(const image::CubinReader& cubin) {
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

void read_cubin(Bytes bytes, FileImage& out) {
  const auto cubin = image::CubinReader::open(bytes);
  if (!cubin) return;
  const auto count = cubin->each_kernel([&](const image::KernelInfo& kernel) {
    out.kernels.emplace_back(kernel.name);
    return true;
  });
  out.kernels_read = count.ok();
  out.toolkit = toolkit_of(*cubin);
}

void read_ptx(Bytes bytes, FileImage& out) {
  const auto ptx = image::PtxReader::open(bytes);
  if (!ptx) return;
  std::uint64_t cursor = 0;
  auto kernel = ptx->next_kernel(cursor);
  for (; kernel; kernel = ptx->next_kernel(cursor)) out.kernels.emplace_back(kernel->name);
  out.kernels_read = kernel.error().code == Errc::not_found;
}

void read_contents(Bytes bytes, FileImage& out) {
  if (out.candidate.kind == image::ImageKind::cubin) read_cubin(bytes, out);
  if (out.candidate.kind == image::ImageKind::ptx) read_ptx(bytes, out);
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

}  // namespace kshim::analysis
