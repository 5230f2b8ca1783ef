// SPDX-License-Identifier: Apache-2.0
#include "analyzer/device_code/image_contents.h"

#include "kshim/image/decompress.h"
#include "kshim/image/ptx.h"

namespace kshim::device_code {
namespace {

/// Calls visit() for each kernel that `next` finds in an image that was opened, until it answers false. False
/// where the image cannot be read to its end.
template <class Image, class Next, class Visit>
bool each_kernel(const Result<Image>& image, Next next, Visit&& visit) {
  for (std::uint64_t cursor = 0; image;) {
    const auto kernel = ((*image).*next)(cursor);
    if (!kernel) return kernel.error().code == Errc::not_found;
    if (!visit(*kernel)) return true;
  }
  return false;
}

void read_contents(Bytes bytes, FileImage& out) {
  out.kernels_read = each_kernel_name(out.candidate.kind, bytes, [&](std::string_view name) {
    out.kernels.emplace_back(name);
    return true;
  });
  out.toolkit = toolkit_of(out.candidate.kind, bytes);
  out.lines = kernel_lines(out.candidate.kind, bytes);
}

class ModuleReader {
 public:
  ModuleReader(const DeviceCode& code, std::uint64_t& budget, FileModule& out)
      : code_(code), budget_(budget), out_(out) {}

  void read(const CodeModule& module) {
    if (module.damage != 0) note(code_.damage[module.damage - 1]);
    out_.images.reserve(module.count);
    for (std::uint32_t i = 0; i < module.count; ++i)
      out_.images.push_back(read(code_.images[module.first + i]));
    for (const std::uint32_t part : module.parts) add_part(code_.images[part]);
  }

 private:
  FileImage read(const CodeImage& image) {
    FileImage out;
    out.candidate = image.candidate;
    out.compression = image.compression;
    out.bytes = image.bytes;
    const std::uint64_t cost = std::max<std::uint64_t>(image.bytes, image.payload.size());
    if (cost > budget_) return out;
    budget_ -= cost;
    const auto clear = decompressor_.run(entry_of(image));
    if (clear) {
      read_contents(*clear, out);
    } else {
      const auto name = image::to_name(image.candidate.kind, image.candidate.arch);
      note({image.offset, fmt::format("the {} image {}", name.view(), describe(clear.error().code))});
    }
    return out;
  }

  /// The relocatable parts of one architecture make one program: their kernels belong together, and what
  /// cannot read the newest of them cannot link it.
  void add_part(const CodeImage& image) {
    FileImage part = read(image);
    const auto [at, first] =
        programs_.try_emplace({image.candidate.kind, image.candidate.arch}, out_.images.size());
    if (first) {
      out_.images.push_back(std::move(part));
      return;
    }
    FileImage& whole = out_.images[at->second];
    whole.kernels.insert(whole.kernels.end(), std::make_move_iterator(part.kernels.begin()),
                         std::make_move_iterator(part.kernels.end()));
    whole.kernels_read = whole.kernels_read && part.kernels_read;
    whole.lines.merge(part.lines);
    whole.bytes += part.bytes;
    whole.candidate.isa = std::max(whole.candidate.isa, part.candidate.isa);
  }

  void note(const Damage& damage) {
    if (out_.damage.empty()) out_.damage = fmt::format("{} at offset {}", damage.what, damage.offset);
  }

  const DeviceCode& code_;
  std::uint64_t& budget_;
  FileModule& out_;
  image::Decompressor decompressor_;
  std::map<std::pair<image::ImageKind, image::Arch>, std::size_t> programs_;  ///< of parts, in out_.images
};

}  // namespace

FileModule read_module(const DeviceCode& code, const CodeModule& module, std::uint64_t& budget) {
  FileModule out;
  ModuleReader(code, budget, out).read(module);
  return out;
}

std::vector<ImageBodies> read_bodies(const DeviceCode& code, const CodeModule& module,
                                     const std::vector<std::string>& kernels, std::uint64_t& budget) {
  std::vector<ImageBodies> out;
  if (!module.parts.empty()) return out;
  image::Decompressor decompressor;
  for (std::uint32_t i = 0; i < module.count; ++i) {
    const CodeImage& image = code.images[module.first + i];
    ImageBodies row{image.candidate, std::vector<std::uint64_t>(kernels.size())};
    const std::uint64_t cost = std::max<std::uint64_t>(image.bytes, image.payload.size());
    if (cost <= budget && !image.relocatable && image.candidate.kind == image::ImageKind::cubin) {
      budget -= cost;
      if (const auto clear = decompressor.run(entry_of(image))) {
        const auto cubin = image::CubinReader::open(*clear);
        for (std::size_t k = 0; cubin && k < kernels.size(); ++k)
          if (const auto section = cubin->elf().section(".text." + kernels[k])) row.bytes[k] = section->size;
      }
    }
    out.push_back(std::move(row));
  }
  return out;
}

image::Image entry_of(const CodeImage& image) {
  image::Image out;
  out.kind = image.candidate.kind;
  out.arch = image.candidate.arch;
  out.isa = image.candidate.isa;
  out.compression = image.compression;
  out.debug = image.debug;
  out.flags = image.flags;
  out.uncompressed_size = image.left_packed ? UINT64_MAX : image.bytes;
  out.payload = image.payload;
  return out;
}

bool FileModule::has_kernels() const {
  // LTO-IR is for a linker: no driver runs what is in it.
  return std::ranges::any_of(images, [](const FileImage& image) {
    return image.candidate.kind != image::ImageKind::ltoir && (!image.kernels_read || !image.kernels.empty());
  });
}

bool each_kernel_name(image::ImageKind kind, Bytes clear,
                      const std::function<bool(std::string_view)>& visit) {
  const auto visit_name = [&](const auto& kernel) { return visit(kernel.name); };
  if (kind == image::ImageKind::cubin)
    return each_kernel(image::CubinReader::open(clear), &image::CubinReader::next_name, visit_name);
  if (kind == image::ImageKind::ptx)
    return each_kernel(image::PtxReader::open(clear), &image::PtxReader::next_brief, visit_name);
  return false;
}

image::Version toolkit_of(image::ImageKind kind, Bytes clear) {
  if (kind != image::ImageKind::cubin) return {};
  const auto cubin = image::CubinReader::open(clear);
  return cubin ? cubin->toolkit() : image::Version{};
}

KernelLister::List KernelLister::list(image::ImageKind kind, Bytes clear) {
  kernels_.clear();
  bool whole = false;
  if (kind == image::ImageKind::cubin) whole = list_cubin(clear);
  if (kind == image::ImageKind::ptx) whole = list_ptx(clear);
  return {kernels_, whole};
}

bool KernelLister::list_cubin(Bytes clear) {
  const auto cubin = image::CubinReader::open(clear);
  const bool whole = each_kernel(cubin, &image::CubinReader::next_name, [this](const auto& name) {
    image::KernelSlot& slot = kernels_.emplace_back();
    slot.info.name = name.name;
    slot.info.code_bytes = name.code_bytes;
    slot.symbol = name.symbol;
    slot.section = name.section;
    return true;
  });
  return cubin && cubin->describe(kernels_).ok() && whole;
}

bool KernelLister::list_ptx(Bytes clear) {
  return each_kernel(image::PtxReader::open(clear), &image::PtxReader::next_brief,
                     [this](const auto& kernel) {
                       kernels_.emplace_back().info = kernel;
                       return true;
                     });
}

std::vector<ImageCount> count_images(const DeviceCode& code) {
  const bool linked =
      std::ranges::any_of(code.images, [](const CodeImage& image) { return !image.relocatable; });
  std::vector<bool> loadable(code.images.size());
  for (const CodeModule& module : code.modules)
    each_image_of(module, [&](std::uint32_t index) { loadable[index] = true; });
  // A hostile file has as many architectures as images, which are millions: never search them one by one.
  std::map<ProgramKey, ImageCount> rows;
  for (std::size_t i = 0; i < code.images.size(); ++i) {
    const CodeImage& image = code.images[i];
    // In a linked file, the cubin of a relocatable part was the linker's input and is no driver's, and
    // neither is PTX that the program cannot be linked from.
    if (linked && image.relocatable && (image.candidate.kind != image::ImageKind::ptx || !loadable[i]))
      continue;
    ImageCount& row =
        rows.try_emplace(program_of(image.candidate), ImageCount{image.candidate}).first->second;
    ++row.count;
    row.bytes += image.bytes;
    row.stored += image.payload.size();
  }
  std::vector<ImageCount> out;
  out.reserve(rows.size());
  for (const auto& [name, row] : rows) out.push_back(row);
  return out;
}

}  // namespace kshim::device_code
