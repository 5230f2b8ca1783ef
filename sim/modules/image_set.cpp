// SPDX-License-Identifier: Apache-2.0
#include "modules/image_set.h"

#include <cstring>

#include "base/settings.h"
#include "device/product.h"
#include "kshim/image/decompress.h"
#include "kshim/image/fatbin.h"
#include "modules/file_bytes.h"

namespace kshim::sim {
namespace {

using image::BlobKind;
using image::Choice;
using image::ImageKind;
using image::Version;

/// The bytes at an address without a size, as far as their own headers say. Empty: nothing a driver would
/// load.
Bytes measure(const void* data) noexcept {
  const auto* begin = static_cast<const std::byte*>(data);
  const Bytes all(begin, static_cast<std::size_t>(PTRDIFF_MAX) - reinterpret_cast<std::uintptr_t>(begin));
  const auto starts_with = [&](const void* magic) {
    // Byte by byte: a text shorter than the magic number ends at its NUL, which no magic number has.
    const auto* wanted = static_cast<const std::byte*>(magic);
    for (std::size_t i = 0; i < 4; ++i) {
      if (begin[i] != wanted[i]) return false;
    }
    return true;
  };
  if (starts_with(&image::kFatbinMagic)) {
    const auto fatbin = image::FatbinReader::open(all);
    return fatbin ? all.first(fatbin->size()) : Bytes();
  }
  if (starts_with("\x7f"
                  "ELF")) {
    const auto elf = image::ElfReader::open(all);
    return elf ? all.first(elf->extent()) : Bytes();
  }
  return bytes_of(std::string_view(static_cast<const char*>(data)));
}

bool is_wrapper(const void* data) noexcept {
  return std::strncmp(static_cast<const char*>(data), "\xb1\x43\x62\x46", 4) == 0;
}

std::string text(image::ShortName name) { return std::string(name.view()); }

/// What the driver's compiler says about PTX it does not take, as far as its wording is known (ptxas 13.0).
std::string complaint(const image::Selection& selection, const std::vector<image::Image>& images) {
  const Version newest = image::ptx_isa_of_cuda(settings().driver);
  for (const image::Image& image : images) {
    if (image.kind != ImageKind::ptx) continue;
    if (selection.error == CUDA_ERROR_UNSUPPORTED_PTX_VERSION && image.isa > newest) {
      return "ptxas fatal   : Unsupported .version " + text(to_name(image.isa)) + "; current version is '" +
             text(to_name(newest)) + "'";
    }
    if (selection.error == CUDA_ERROR_INVALID_PTX) {
      return "ptxas fatal   : PTX with .target '" + text(to_name(ImageKind::cubin, image.arch)) +
             "' cannot be compiled for this device";
    }
  }
  return {};
}

}  // namespace

CUresult ImageSet::read(Bytes bytes, bool copy, Container& out) {
  if (copy) {
    auto own = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
    bytes = *own;
    out.owner = std::move(own);
  }
  switch (image::identify(bytes)) {
    case BlobKind::fatbin: {
      auto fatbin = image::FatbinReader::open(bytes);
      if (!fatbin) return CUDA_ERROR_INVALID_IMAGE;
      image::FatbinReader walk = *fatbin;
      for (;;) {
        const auto entry = walk.next();
        if (entry) {
          out.images.push_back(*entry);
        } else if (entry.error().code == Errc::not_found) {
          return CUDA_SUCCESS;
        } else if (entry.error().code != Errc::unknown_kind) {
          return CUDA_ERROR_INVALID_IMAGE;
        }
      }
    }
    case BlobKind::cubin: {
      const auto cubin = image::CubinReader::open(bytes);
      if (!cubin) return CUDA_ERROR_INVALID_IMAGE;
      image::Image loose;
      loose.arch = cubin->arch();
      loose.payload = bytes;
      out.images.push_back(loose);
      out.packaging = image::Packaging::loose;
      return CUDA_SUCCESS;
    }
    case BlobKind::ptx: {
      const auto ptx = image::PtxReader::open(bytes);
      if (!ptx) return CUDA_ERROR_INVALID_PTX;
      image::Image loose;
      loose.kind = ImageKind::ptx;
      loose.arch = ptx->target();
      loose.isa = ptx->isa();
      loose.payload = bytes;
      out.images.push_back(loose);
      out.packaging = image::Packaging::loose;
      return CUDA_SUCCESS;
    }
    default:
      return CUDA_ERROR_INVALID_IMAGE;
  }
}

CUresult ImageSet::add_wrapper(const void* data, bool copy) {
  image::FatbinWrapper wrapper;
  std::memcpy(&wrapper, data, sizeof wrapper);
  if (wrapper.version != 1 && wrapper.version != 2) return CUDA_ERROR_INVALID_IMAGE;
  const auto add = [copy](std::uint64_t address, Container& out) {
    if (address == 0) return CUDA_ERROR_INVALID_IMAGE;
    return read(measure(reinterpret_cast<const void*>(address)), copy, out);
  };
  if (const CUresult result = add(wrapper.fatbin, linked_); result != CUDA_SUCCESS) return result;
  if (wrapper.version == 1 || wrapper.prelinked == 0) return CUDA_SUCCESS;
  const auto* part = reinterpret_cast<const std::uint64_t*>(wrapper.prelinked);
  for (; *part != 0; ++part) {
    Container container;
    if (const CUresult result = add(*part, container); result != CUDA_SUCCESS) return result;
    if (!container.images.empty()) parts_.push_back(std::move(container));
  }
  return CUDA_SUCCESS;
}

CUresult ImageSet::from_memory(const void* image, bool copy, std::unique_ptr<ImageSet>& out) {
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!is_wrapper(image)) return from_bytes(measure(image), copy, out);
  auto made = std::make_unique<ImageSet>();
  const CUresult result = made->add_wrapper(image, copy);
  if (result == CUDA_SUCCESS) out = std::move(made);
  return result;
}

CUresult ImageSet::from_bytes(Bytes bytes, bool copy, std::unique_ptr<ImageSet>& out) {
  auto made = std::make_unique<ImageSet>();
  const CUresult result = read(bytes, copy, made->linked_);
  if (result == CUDA_SUCCESS) out = std::move(made);
  return result;
}

CUresult ImageSet::from_file(const char* path, std::unique_ptr<ImageSet>& out, bool later) {
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto bytes = file_bytes(path);
  if (!bytes) return CUDA_ERROR_FILE_NOT_FOUND;
  const CUresult read = from_bytes(*bytes, true, out);
  if (read == CUDA_SUCCESS || !later) return read;
  out = std::make_unique<ImageSet>();
  out->unread_ = read;
  return CUDA_SUCCESS;
}

CUresult ImageSet::pick(const Container& container, image::ComputeCapability device, Piece& out,
                        std::string& message) {
  std::vector<image::Candidate> candidates;
  for (const image::Image& each : container.images) candidates.push_back({each.kind, each.arch, each.isa});
  const Settings& s = settings();
  const image::Selection selection = select_image(candidates, {device, s.driver, s.jit}, container.packaging);
  if (selection.choice == Choice::none) {
    message = complaint(selection, container.images);
    return static_cast<CUresult>(selection.error);
  }
  const image::Image& image = container.images[selection.index];
  out.tile = image.kind == ImageKind::tileir;
  out.ptx = selection.choice == Choice::jit && !out.tile;
  out.arch = image.arch;
  out.bytes = image.payload;
  out.owner = container.owner;
  if (image.compression == image::Compression::none) return CUDA_SUCCESS;
  if (!image::driver_reads(image.compression, s.driver)) {
    message = "the fatbin is compressed with Zstandard, which drivers before CUDA 12.4 do not read";
    return CUDA_ERROR_INVALID_IMAGE;
  }
  auto clear = std::make_shared<std::vector<std::byte>>();
  if (!image::decompress(image, *clear)) return CUDA_ERROR_INVALID_IMAGE;
  out.bytes = *clear;
  out.owner = std::move(clear);
  return CUDA_SUCCESS;
}

ImageSet::Chosen ImageSet::choose(image::ComputeCapability device) const {
  Chosen out;
  if (unread_ != CUDA_SUCCESS) {
    out.result = unread_;
    return out;
  }
  std::vector<Piece> pieces(1);
  out.result = pick(linked_, device, pieces[0], out.message);
  if (out.result != CUDA_SUCCESS && out.result != CUDA_ERROR_INVALID_IMAGE && !parts_.empty()) {
    // No linked image fits: the driver links the relocatable parts, and needs one of each that fits.
    pieces.clear();
    for (const Container& part : parts_) {
      out.result = pick(part, device, pieces.emplace_back(), out.message);
      if (out.result != CUDA_SUCCESS) break;
    }
  }
  if (out.result == CUDA_SUCCESS) out.result = Code::open(std::move(pieces), device, out.code, out.message);
  return out;
}

const ImageSet::Chosen& ImageSet::chosen(const Device& device) {
  const image::ComputeCapability cc = device.limits.cc;
  const std::lock_guard guard(lock_);
  const auto found = chosen_.find(cc.number());
  if (found != chosen_.end()) return found->second;
  return chosen_.emplace(cc.number(), choose(cc)).first->second;  // a map's elements stay where they are
}

CUresult ImageSet::code_for(const Device& device, std::shared_ptr<const Code>& out) {
  const Chosen& choice = chosen(device);
  if (choice.result == CUDA_SUCCESS) out = choice.code;
  return choice.result;
}

CUresult ImageSet::piece_for(const Device& device, Piece& out, std::string& message) const {
  return pick(linked_, device.limits.cc, out, message);
}

std::string ImageSet::message_for(const Device& device) { return chosen(device).message; }

}  // namespace kshim::sim
