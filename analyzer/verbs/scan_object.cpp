// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/scan_object.h"

#include <elf.h>
#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <tuple>

#include "analyzer/core/text.h"
#include "analyzer/diagnose/file_coverage.h"
#include "analyzer/verbs/scan_findings.h"

namespace kshim::scan {
namespace {

using analysis::KernelTable;
using analysis::KernelUse;

std::string format_of(const analysis::DeviceCode& code, Bytes bytes) {
  switch (code.host) {
    case analysis::HostFormat::elf:
      return "ELF " + code.machine;
    case analysis::HostFormat::pe:
      return "PE " + code.machine;
    case analysis::HostFormat::none:
      break;
  }
  switch (image::identify(bytes)) {
    case image::BlobKind::cubin:
      return "cubin";
    case image::BlobKind::ptx:
      return "PTX";
    case image::BlobKind::ltoir:
      return "LTO-IR";
    default:
      return "fatbin";
  }
}

// Cubins first, each kind by architecture.
bool comes_before(const KernelTable::Label& a, const KernelTable::Label& b) {
  return std::tuple(a.kind != image::ImageKind::cubin, a.arch) <
         std::tuple(b.kind != image::ImageKind::cubin, b.arch);
}

std::vector<ScannedKernel> list_kernels(const KernelTable& table) {
  std::vector<ScannedKernel> out;
  out.reserve(table.kernels.size());
  for (const auto& [name, coverage] : table.kernels) {
    ScannedKernel kernel{name, analysis::demangle(name), {}};
    std::vector<KernelUse> uses = coverage.uses;
    std::sort(uses.begin(), uses.end(), [&](const KernelUse& left, const KernelUse& right) {
      return comes_before(table.labels[left.label], table.labels[right.label]);
    });
    for (const KernelUse& use : uses) {
      const KernelTable::Label& label = table.labels[use.label];
      kernel.images.push_back({std::string(image::to_name(label.kind, label.arch).view()), use.registers,
                               use.shared_bytes, use.local_bytes, use.max_threads, use.code_bytes});
    }
    out.push_back(std::move(kernel));
  }
  std::sort(out.begin(), out.end(),
            [](const ScannedKernel& a, const ScannedKernel& b) { return a.name < b.name; });
  return out;
}

std::vector<ModuleSize> largest_of(const analysis::DeviceCode& code, const KernelTable& table) {
  constexpr std::ptrdiff_t kKept = 10;
  std::vector<std::pair<ModuleSize, std::size_t>> all;
  for (std::size_t index = 0; index < code.modules.size(); ++index) {
    ModuleSize size{.offset = code.modules[index].offset, .kernel = {}};
    analysis::each_image_of(code.modules[index], [&](std::uint32_t i) {
      ++size.images;
      size.stored += code.images[i].payload.size();
      size.bytes += code.images[i].bytes;
    });
    all.emplace_back(std::move(size), index);
  }
  const auto end = all.begin() + std::min<std::ptrdiff_t>(kKept, std::ssize(all));
  std::partial_sort(all.begin(), end, all.end(), [](const auto& a, const auto& b) {
    return std::tuple(b.first.stored, a.first.offset) < std::tuple(a.first.stored, b.first.offset);
  });
  std::vector<ModuleSize> out;
  for (auto at = all.begin(); at != end; ++at) {
    if (at->second < table.first.size()) at->first.kernel = table.first[at->second];
    out.push_back(std::move(at->first));
  }
  return out;
}

// A damaged file that shows no trace of device code is no worse than any other broken file.
bool is_of_device_code(const analysis::DeviceCode& code) {
  return code.host == analysis::HostFormat::none || code.fatbins != 0 || !code.images.empty() ||
         std::any_of(code.damage.begin(), code.damage.end(),
                     [](const analysis::Damage& each) { return each.of != analysis::Damage::Of::host; });
}

std::string note_of(const ScannedObject& object, const analysis::Damage& damage) {
  return fmt::format("{}: at offset {}, {}", object.name(), damage.offset, damage.what);
}

}  // namespace

std::vector<std::string> ScannedKernel::archs() const {
  std::vector<std::string> out;
  out.reserve(images.size());
  for (const KernelNeeds& image : images) out.push_back(image.arch);
  return out;
}

std::optional<ObjectResult> scan_object(ScannedObject object, Bytes bytes, const Options& options) {
  analysis::DeviceCode code = analysis::find_device_code(bytes);
  if (code.images.empty() && code.damage.empty()) return std::nullopt;
  if (!is_of_device_code(code)) {
    ObjectResult result;
    result.notes.push_back(note_of(object, code.damage[0]));
    return result;
  }
  // An object of `nvcc -dc` has parts only: what a linker would make of them is one module.
  if (code.modules.empty() && !code.images.empty())
    code.modules.push_back({.first = 0,
                            .count = static_cast<std::uint32_t>(code.images.size()),
                            .offset = code.images[0].offset,
                            .parts = {}});
  KernelTable table;
  const analysis::FileCoverage coverage =
      cover(code, options.targets, options.driver, options.kernels ? &table : nullptr);
  object.build_id = code.build_id;
  Owner owner;
  if (object.package.empty() && object.member.empty() && options.owner) {
    owner = options.owner(object.path);
    object.package = packages::package_name(owner.package);
    object.requested = owner.package.requested;
  }
  object.format = format_of(code, bytes);
  object.bytes = bytes.size();
  object.fatbins = code.fatbins;
  object.modules = code.modules.size();
  object.images = count_images(code);
  object.targets = coverage.targets;
  if (options.kernels) object.kernels = list_kernels(table);
  object.largest = largest_of(code, table);
  const auto type = read_le<std::uint16_t>(bytes, offsetof(Elf64_Ehdr, e_type));
  const std::string name = object.name();
  const bool library = code.host == analysis::HostFormat::pe
                           ? !name.ends_with(".exe")
                           : type.ok() && *type == ET_DYN && name.find(".so") != std::string::npos;
  ObjectResult result;
  result.findings = findings_of({object, code, coverage, owner, options.kernels ? &table : nullptr, library},
                                options.driver);
  for (const analysis::Damage& damage : code.damage)
    if (damage.of == analysis::Damage::Of::unknown_kind) result.notes.push_back(note_of(object, damage));
  result.object = std::move(object);
  result.loose = code.host == analysis::HostFormat::none;
  result.has_device_code = true;
  return result;
}

}  // namespace kshim::scan
