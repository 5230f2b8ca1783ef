// SPDX-License-Identifier: Apache-2.0
// compiled-out: the image fits, and nothing is left of the kernel in it. Told of kernels that were launched
// (KSHIM_COVERAGE=1) or that failed, never of those that lie about: libraries keep such stubs on purpose, for
// GPUs on which they launch others.
#include "analyzer/core/text.h"
#include "analyzer/diagnose/about.h"
#include "analyzer/diagnose/failure_finding.h"
#include "analyzer/diagnose/report_findings.h"

namespace kshim::diagnose {
using core::Finding;
using device_code::ImageBodies;

namespace {

constexpr double kBySize = 0.75;
// An empty body, a trap and a printf take 64 to 512 bytes: measured with ptxas 12.9 and 13.0, sm_52 to
// sm_120.
constexpr std::uint64_t kMaxStub = 512;
constexpr std::uint64_t kFarLarger = 8;
constexpr std::size_t kMaxUsedKernels = 4096;

/// Kernels of one module of a file, each with the line of the report that names it.
struct Used {
  const input::ObjectRecord* object = nullptr;
  const input::ModuleRecord* module = nullptr;
  std::vector<std::string> kernels;
  std::vector<std::uint32_t> lines;
  std::unordered_set<std::string_view> seen;  ///< of the report's strings
  bool launched = false;                      ///< as KSHIM_COVERAGE=1 tells; else they failed
};

std::vector<Used> used_kernels(const Scene& scene) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, Used> modules;
  std::size_t count = 0;
  const auto add = [&](std::optional<std::uint64_t> object_id, std::optional<std::uint64_t> module_id,
                       const std::string& kernel, std::uint32_t line, bool launched) {
    const input::ModuleRecord* module = scene.index.module(module_id);
    const input::ObjectRecord* object = scene.index.object(object_id);
    if (object == nullptr && module != nullptr) object = scene.index.object(module->object);
    if (object == nullptr || module == nullptr || !module->offset || kernel.empty() ||
        ++count > kMaxUsedKernels)
      return;
    Used& out = modules[{object->id, *module->offset}];
    out.object = object;
    out.module = module;
    out.launched = out.launched || launched;
    if (!out.seen.insert(kernel).second) return;
    out.kernels.push_back(kernel);
    out.lines.push_back(line);
  };
  for (const input::CoverageRecord& row : scene.report.coverage)
    add(row.object, row.module, row.kernel, row.line, true);
  for (const input::FailureRecord& row : scene.report.failures)
    add(row.object, row.module, row.kernel, row.line, false);
  std::vector<Used> out;
  for (auto& [key, used] : modules) out.push_back(std::move(used));
  return out;
}

struct Stub {
  std::size_t kernel = 0;
  std::uint64_t bytes = 0;
  std::uint64_t bytes_elsewhere = 0;
  const image::Candidate* elsewhere = nullptr;  ///< the image that has most of it
};

std::vector<Stub> stubs_in(const std::vector<ImageBodies>& images, std::size_t chosen, std::size_t kernels) {
  std::vector<Stub> out;
  for (std::size_t k = 0; k < kernels; ++k) {
    Stub stub{.kernel = k, .bytes = images[chosen].bytes[k]};
    if (stub.bytes == 0 || stub.bytes > kMaxStub) continue;
    for (const ImageBodies& image : images) {
      if (image.bytes[k] <= stub.bytes_elsewhere) continue;
      stub.bytes_elsewhere = image.bytes[k];
      stub.elsewhere = &image.candidate;
    }
    if (stub.bytes_elsewhere >= kFarLarger * stub.bytes) out.push_back(stub);
  }
  return out;
}

std::optional<Finding> finding_of_stubs(const Scene& scene, const Used& used, std::uint64_t& budget) {
  const device_code::ObjectFile* file = scene.files.find(*used.object);
  InReport subject;
  subject.object = used.object;
  subject.module = used.module;
  subject.device = scene.index.device(used.module->device);
  if (file == nullptr || !cc_of(scene, subject.device)) return std::nullopt;
  const std::vector<ImageBodies> images = file->bodies_at(*used.module->offset, used.kernels, budget);
  if (images.size() < 2) return std::nullopt;
  for (const ImageBodies& image : images) subject.facts.images.list.push_back({.candidate = image.candidate});
  set_facts(scene, subject);
  const image::Selection selection =
      select(subject.facts.images.list, subject.facts, subject.facts.driver.switches);
  if (selection.choice == image::Choice::none) return std::nullopt;
  const std::vector<Stub> stubs = stubs_in(images, selection.index, used.kernels.size());
  if (stubs.empty()) return std::nullopt;
  const image::Candidate& chosen = images[selection.index].candidate;
  Finding out = new_finding(core::Cause::compiled_out, kBySize);
  out.object = used.object->path;
  if (const auto package = package_of(scene, *used.object)) out.package = package_name(*package);
  describe_images(subject.facts, out);
  out.need = sm_name(*subject.facts.gpu.cc);
  if (auto device = device_of(scene, subject.device)) out.devices.push_back(std::move(*device));
  for (const Stub& stub : stubs) {
    const std::string kernel = core::demangle(used.kernels[stub.kernel]);
    out.kernels.push_back(kernel);
    out.evidence.push_back(
        {core::EvidenceId::empty_body,
         fmt::format("{} {}: in {} of {}, which the driver takes, its body has {} bytes; in {} it has {}.",
                     core::shorten(kernel, 60), used.launched ? "was launched" : "failed", name(chosen),
                     core::basename_of(used.object->path), stub.bytes, name(*stub.elsewhere),
                     stub.bytes_elsewhere),
         location(scene.report, used.lines[stub.kernel]),
         {{"kernel", kernel}, {"image", name(chosen)}}});
  }
  out.kernels_total = out.kernels.size();
  out.failed_kernel = out.kernels.front();
  out.headline = fmt::format("{} is compiled out for {}: hardly anything of its body is left",
                             core::shorten(out.failed_kernel, 60), name(chosen));
  Facts at = facts_about(out, subject.facts);
  at.images.taken = chosen;
  set_about(std::move(at), out);
  return out;
}

}  // namespace

std::vector<Finding> compiled_out(const Scene& scene) {
  std::vector<Finding> out;
  std::uint64_t budget = kMaxPayload;
  for (const Used& used : used_kernels(scene)) {
    if (auto finding = finding_of_stubs(scene, used, budget)) out.push_back(std::move(*finding));
  }
  return out;
}

}  // namespace kshim::diagnose
