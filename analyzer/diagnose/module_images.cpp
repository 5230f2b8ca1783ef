// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/module_images.h"

#include <algorithm>
#include <map>

#include "analyzer/diagnose/rules.h"

namespace kshim::analysis {
namespace {

using image::Candidate;
using image::ImageKind;

bool parse_image_name(std::string_view name, Candidate& out) {
  if (name.starts_with("sm_")) {
    out.kind = ImageKind::cubin;
  } else if (name.starts_with("compute_")) {
    out.kind = ImageKind::ptx;
  } else if (name.starts_with("lto_")) {
    out.kind = ImageKind::ltoir;
  } else {
    return false;
  }
  const auto arch = image::parse_arch(name);
  if (!arch) return false;
  out.arch = *arch;
  return true;
}

// The PTX ISA that the list of the whole file has for an architecture, where it has one only.
image::Version isa_of(std::string_view arch, const ObjectRecord* object) {
  image::Version isa;
  if (object == nullptr || !object->images) return isa;
  for (const ImageEntry& entry : *object->images) {
    if (entry.arch != arch) continue;
    const auto version = image::parse_version(entry.isa).value_or(image::Version{});
    if (isa.known() && isa != version) return {};
    isa = version;
  }
  return isa;
}

void from_gap(const GapRecord& gap, const ObjectRecord* object, ModuleImages& out) {
  for (const std::string& name : gap.have) {
    ImageFact fact;
    if (!parse_image_name(name, fact.candidate)) continue;
    fact.candidate.isa = isa_of(name, object);
    out.images.push_back(fact);
  }
  if (out.images.empty()) return;
  out.scope = ImageScope::module;
  out.source = "as the shim saw it";
  out.line = gap.line;
}

// Where something fits there is no gap: what the driver takes is all that is known of the rest.
void from_selection(const ModuleRecord& module, ModuleImages& out) {
  ImageFact fact;
  if (!parse_image_name(module.selected, fact.candidate)) return;
  fact.toolkit = image::parse_version(module.toolkit).value_or(image::Version{});
  out.toolkit = fact.toolkit;
  out.images.push_back(fact);
  out.scope = ImageScope::module;
  out.source = "as the shim saw it";
  out.line = module.line;
}

void from_report(const ObjectRecord& object, ModuleImages& out) {
  if (!object.images) return;
  for (const ImageEntry& entry : *object.images) {
    ImageFact fact;
    if (!parse_image_name(entry.arch, fact.candidate)) continue;
    fact.candidate.isa = image::parse_version(entry.isa).value_or(image::Version{});
    fact.count = entry.count;
    out.images.push_back(fact);
  }
  if (out.images.empty()) return;
  out.scope = object.fatbins == 1 ? ImageScope::module : ImageScope::file;
  out.source = "as the shim listed the file";
  out.line = object.line;
}

bool has_kernel(const FileImage& image, const std::string& kernel) {
  return std::find(image.kernels.begin(), image.kernels.end(), kernel) != image.kernels.end();
}

void from_module(FileModule module, const ObjectRecord& object, const std::string& kernel,
                 ModuleImages& out) {
  out.damage = std::move(module.damage);
  for (const FileImage& image : module.images) {
    ImageFact fact;
    fact.candidate = image.candidate;
    fact.compression = image.compression;
    fact.toolkit = image.toolkit;
    if (image.kernels_read && !kernel.empty()) fact.has_kernel = has_kernel(image, kernel);
    if (image.toolkit > out.toolkit) out.toolkit = image.toolkit;
    out.images.push_back(fact);
  }
  out.file_images = std::move(module.images);
  out.complete_kernels = std::all_of(
      out.file_images.begin(), out.file_images.end(),
      [](const FileImage& image) { return image.kernels_read || image.candidate.kind == ImageKind::ltoir; });
  if (out.images.empty()) return;
  out.scope = ImageScope::module;
  out.source = "read from the file";
  out.line = object.line;
}

void from_counts(const std::vector<ImageCount>& counts, const ObjectRecord& object, std::size_t modules,
                 ModuleImages& out) {
  for (const ImageCount& row : counts) {
    ImageFact fact;
    fact.candidate = row.candidate;
    fact.count = row.count;
    out.images.push_back(fact);
  }
  if (out.images.empty()) return;
  out.scope = modules == 1 ? ImageScope::module : ImageScope::file;
  out.source = "read from the whole file";
  out.line = object.line;
}

}  // namespace

ModuleImages find_images(const ModuleQuestion& question, ObjectFiles& files) {
  ModuleImages out;
  const ObjectFile* file = question.object != nullptr ? files.find(*question.object) : nullptr;
  if (file != nullptr) {
    if (question.offset) {
      from_module(file->module_at(*question.offset), *question.object, question.kernel, out);
    } else if (!question.kernel.empty()) {
      from_module(file->module_with_kernel(question.kernel), *question.object, question.kernel, out);
    }
    if (out.scope == ImageScope::none && !question.offset) {
      from_module(file->only_module_with_kernels(), *question.object, question.kernel, out);
    }
    if (out.scope != ImageScope::none) return out;
  }
  if (question.gap != nullptr) from_gap(*question.gap, question.object, out);
  if (out.scope == ImageScope::none && question.object == nullptr && question.module != nullptr)
    from_selection(*question.module, out);
  if (out.scope == ImageScope::none && question.object != nullptr) from_report(*question.object, out);
  if (out.scope == ImageScope::none && file != nullptr) {
    from_counts(file->image_counts(), *question.object, file->code().modules.size(), out);
  }
  return out;
}

std::vector<std::string> lacking_kernels(const ModuleImages& module, const Facts& facts,
                                         const std::string& first) {
  std::map<std::string, std::vector<ImageFact>> by_kernel;
  for (std::size_t i = 0; i < module.file_images.size(); ++i) {
    for (const std::string& kernel : module.file_images[i].kernels)
      by_kernel[kernel].push_back(module.images[i]);
  }
  // What the driver takes is decided for the module as a whole; a kernel that is not in that image is lacking
  // too.
  const image::Selection chosen = select(module.images, facts, facts.switches);
  std::vector<std::string> out;
  if (!first.empty()) out.push_back(first);
  for (const auto& [kernel, images] : by_kernel) {
    const bool served =
        chosen.choice != image::Choice::none && has_kernel(module.file_images[chosen.index], kernel);
    if (!served && kernel != first) out.push_back(kernel);
  }
  return out;
}

}  // namespace kshim::analysis
