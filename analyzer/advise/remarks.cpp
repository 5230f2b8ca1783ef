// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/remarks.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "analyzer/advise/dead_ends.h"
#include "analyzer/advise/releases.h"
#include "analyzer/advise/source_build.h"
#include "analyzer/advise/wheel_fixes.h"
#include "analyzer/data/knowledge.h"
#include "analyzer/data/knowledge_file.h"
#include "analyzer/diagnose/rules.h"

namespace kshim::analysis {
namespace {

// Who could help nobody by building.
void add_build_remarks(const AdviceInput& at, Advice& advice) {
  if (!at.device || !(lacks_code(at.cause) || at.cause == Cause::library_refuses)) return;
  if (is_vendors(at) || !release_range(at).empty())
    advice.remarks.push_back("No rebuild fixes this: the library comes built from NVIDIA.");
  if (first_toolkit_for({*at.device, image::Suffix::none}) == nullptr)
    advice.remarks.push_back(fmt::format("No CUDA toolkit that kshim knows builds for compute capability {}.",
                                         image::to_name(*at.device).view()));
  if (const image::Version asked = source_asks_beyond(at); asked.known() && comes_built(at))
    advice.remarks.push_back(fmt::format(
        "The nvcc of {} can target {}, and the source of {} asks for CUDA {}.", toolkit_range(*at.device),
        image::to_name(image::ImageKind::cubin, {*at.device, image::Suffix::none}).view(), at.package,
        image::to_name(asked).view()));
  const bool hopper = std::any_of(at.have.begin(), at.have.end(), [](const image::Candidate& image) {
    return image.arch == image::Arch{{9, 0}, image::Suffix::a};
  });
  if (at.cause == Cause::arch_specific_image && hopper && at.device->major > 9)
    advice.remarks.push_back(
        "sm_90a is Hopper's alone: kernels that use its instructions (wgmma) must be rewritten for "
        "newer "
        "GPUs, so another backend of the library may be the only way.");
}

}  // namespace

void add_newer_than_known(const AdviceInput& at, std::vector<std::string>& remarks) {
  image::Version cuda = std::max(at.driver, at.toolkit);
  image::Version isa = at.ptx;
  if (at.compiler) cuda = std::max(cuda, at.compiler->version);
  for (const image::Candidate& image : at.have) {
    if (image.kind == image::ImageKind::ptx) isa = std::max(isa, image.isa);
    if (image.kind == image::ImageKind::tileir) cuda = std::max(cuda, image.isa);
  }
  for (std::string& said : std::array{newer_cuda_than_known(cuda), newer_ptx_than_known(isa)}) {
    if (!said.empty()) remarks.push_back(std::move(said));
  }
  const image::ComputeCapability asked = at.compiler ? at.compiler->asked.cc : image::ComputeCapability{};
  for (const image::ComputeCapability cc : {at.device.value_or(asked), asked}) {
    if (cc.major == 0 || find_gpu(cc) != nullptr) continue;
    remarks.push_back(fmt::format("This kshim ({}) knows no GPU of compute capability {}, and judges it by the number.",
                                  knowledge_date(), image::to_name(cc).view()));
    break;
  }
}

bool asks_for_the_driver(const AdviceInput& at) {
  // What cannot be read may be in order and too new, as long as nobody knows who built it.
  const bool perhaps_too_new =
      at.cause == Cause::invalid_image && (!at.toolkit.known() || at.driver < at.toolkit);
  return has_trait(at.cause, cause_trait::not_the_driver) && !perhaps_too_new;
}

void add_remarks(const AdviceInput& at, Serving serving, Advice& advice) {
  if (asks_for_the_driver(at)) add_driver_remark(at, serving, advice.remarks);
  add_build_remarks(at, advice);
  const bool by_package = at.cause == Cause::no_image_for_arch || at.cause == Cause::arch_specific_image ||
                          at.cause == Cause::jit_tax;
  if (by_package && at.object.empty()) add_wheel_remarks(at, advice.remarks);
}

}  // namespace kshim::analysis
