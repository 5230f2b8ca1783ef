// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/fixes.h"
#include "analyzer/advise/wheel_choice.h"
#include "analyzer/data/knowledge_file.h"

namespace kshim::advise {
using core::Cause;
using core::DeadEnd;
using data::DriverSupport;
using diagnose::Facts;

namespace {

// Says so if no rebuild can help.
void add_build_remarks(const Facts& at, AdviceDraft& advice) {
  if (!at.gpu.cc || !(lacks_code(at.cause) || at.cause == Cause::library_refuses)) return;
  if (is_vendors(at) || !release_range(at).empty())
    advice.remarks.push_back("You cannot rebuild this library: NVIDIA ships it prebuilt.");
  if (data::first_toolkit_for({*at.gpu.cc, image::Suffix::none}) == nullptr)
    advice.remarks.push_back(
        fmt::format("No CUDA toolkit that kshim knows builds for compute capability {}.", name(*at.gpu.cc)));
  if (const image::Version asked = source_asks_beyond(at); asked.known() && comes_built(at))
    advice.remarks.push_back(
        fmt::format("The nvcc of {} can target {}, and the source of {} asks for CUDA {}.",
                    toolkit_range(*at.gpu.cc), sm_name(*at.gpu.cc), at.package.name.shown(), name(asked)));
  const bool hopper = std::ranges::any_of(at.images.have, [](const image::Candidate& image) {
    return image.arch == image::Arch{{9, 0}, image::Suffix::a};
  });
  if (at.cause == Cause::arch_specific_image && hopper && at.gpu.cc->major > 9)
    advice.remarks.push_back(
        "sm_90a is Hopper's alone: kernels that use its instructions (wgmma) must be rewritten for newer "
        "GPUs, "
        "so another backend of the library may be the only way.");
}

}  // namespace

void add_newer_than_known(const Facts& at, std::vector<std::string>& remarks) {
  image::Version cuda = std::max(at.driver.cuda, at.images.toolkit);
  image::Version isa = at.images.ptx;
  if (at.call.compiler) cuda = std::max(cuda, at.call.compiler->version);
  for (const image::Candidate& image : at.images.have) {
    if (image.kind == image::ImageKind::ptx) isa = std::max(isa, image.isa);
    if (image.kind == image::ImageKind::tileir) cuda = std::max(cuda, image.isa);
  }
  for (std::string& said : std::array{data::newer_cuda_than_known(cuda), data::newer_ptx_than_known(isa)}) {
    if (!said.empty()) remarks.push_back(std::move(said));
  }
  const image::ComputeCapability asked =
      at.call.compiler ? at.call.compiler->asked.cc : image::ComputeCapability{};
  for (const image::ComputeCapability cc : {at.gpu.cc.value_or(asked), asked}) {
    if (cc < data::gpus().front().cc || data::find_gpu(cc) != nullptr) continue;
    remarks.push_back(
        fmt::format("No GPU of compute capability {1} was known when this kshim was made ({0}): the advice "
                    "follows from the number alone.",
                    data::knowledge_date(), name(cc)));
    break;
  }
}

bool asks_for_the_driver(const Facts& at) {
  // What cannot be read may be in order and too new, as long as its builder is not known.
  const bool perhaps_too_new =
      at.cause == Cause::invalid_image && (!at.images.toolkit.known() || at.driver.cuda < at.images.toolkit);
  return has_trait(at.cause, core::cause_trait::not_the_driver) && !perhaps_too_new;
}

void add_remarks(const Facts& at, DriverSupport serving, AdviceDraft& advice) {
  if (asks_for_the_driver(at)) add_driver_remark(at, serving, advice.remarks);
  add_build_remarks(at, advice);
  const bool by_package = at.cause == Cause::no_image_for_arch || at.cause == Cause::arch_specific_image ||
                          at.cause == Cause::jit_tax;
  if (by_package && at.file.path.empty()) add_wheel_remarks(at, advice.remarks);
}

namespace {

// "The same major version is enough": the image of it that does not fit, by the rules.
void add_same_major(const Facts& at, std::vector<DeadEnd>& out) {
  for (const image::Candidate& image : at.images.have) {
    if (image.kind != image::ImageKind::cubin || image.arch.cc.major != at.gpu.cc->major) continue;
    const image::Verdict verdict = image::judge(image, {*at.gpu.cc, at.driver.cuda, {}});
    if (verdict.fits) continue;
    out.push_back({fmt::format("relying on {}, which is of the same major version", name(image)),
                   image.arch.suffix == image::Suffix::none && image.arch.cc.minor > at.gpu.cc->minor
                       ? fmt::format("its minor version, {}, is above that of this GPU, {}",
                                     image.arch.cc.minor, at.gpu.cc->minor)
                       : image::rule_text(verdict.rule).text});
    return;
  }
}

std::string alternatives(std::vector<std::string> items) {
  const std::string last = items.back();
  items.pop_back();
  return items.empty() ? last : core::join(items, ", ") + " or " + last;
}

// A package that PyTorch's variable could have built, where no process was seen.
bool knows_torch_list(const Facts& at) {
  if (!at.file.path.empty()) return false;
  const data::BuildRow* build = data::find_build(at.package.name.normal(), "");
  return build != nullptr && data::find_recipe(build->recipe).list == data::ArchList::torch;
}

// A wheel that helped the owner of another GPU.
void add_other_variants(const Facts& at, std::vector<DeadEnd>& out) {
  const std::vector<std::string> useless = useless_variants(at);
  if (useless.empty()) return;
  out.push_back({fmt::format("installing the build for {}", alternatives(useless)),
                 "it has no code for this GPU either, although users of other GPUs recommend it"});
}

// The GPU has an image, and its kernel is missing or empty: the list of architectures is not what is wrong.
void add_guard(const Facts& at, std::vector<DeadEnd>& out) {
  // The guard may let the GPU's own through; and where a message is all there is, the list may be what is
  // wrong.
  const bool own =
      at.images.taken ? !(at.gpu.cc && at.images.taken->arch.cc < *at.gpu.cc) : at.call.message.empty();
  const bool guard = (at.cause == Cause::compiled_out && own) ||
                     (at.cause == Cause::latent_gap && at.images.guarded) ||
                     (at.cause == Cause::kernel_missing_from_image && !at.images.holders.empty());
  if (guard)
    out.push_back({"adding the GPU's exact architecture to the list",
                   "the same #if on __CUDA_ARCH__ decides there too, and may leave out even more"});
}

// A step that a fix recommends must not be listed as useless.
bool builds(const AdviceDraft& advice) {
  return std::ranges::any_of(advice.fixes, [](const FixDraft& fix) {
    return (fix.kind == core::FixKind::rebuild || fix.kind == core::FixKind::downgrade) && !fix.steps.empty();
  });
}

bool updates_driver(const AdviceDraft& advice) {
  return core::contains(core::mapped(advice.fixes, &FixDraft::kind), core::FixKind::upgrade_driver);
}

void add_attempts(const Facts& at, AdviceDraft& advice) {
  auto& out = advice.dead_ends;
  const bool installed = comes_built(at);
  const bool image =
      lacks_code(at.cause) && at.cause != Cause::latent_gap && at.cause != Cause::kernel_missing_from_image;
  const bool serves = serving_already(at) != nullptr;
  if (image && at.gpu.cc) add_same_major(at, out);
  if (image && at.gpu.cc && !serves) add_other_variants(at, out);
  if (image && installed && !serves && !builds(advice) &&
      data::knows_wheels_of(data::wheel_name(at.package.name.normal()).distribution))
    out.push_back({"installing a CUDA toolkit",
                   "the package brings its own CUDA libraries, and its kernels come built"});
  if (image && installed)
    out.push_back(
        {"CUDA_LAUNCH_BLOCKING=1", "it makes errors appear where they happen, and this one does already"});
  add_guard(at, out);
}

void add_driver_update(const Facts& at, DriverSupport serving, AdviceDraft& advice) {
  const bool switched = has_trait(at.cause, core::cause_trait::switched);
  // The GPU of a latent gap need not be in this machine.
  if ((!lacks_code(at.cause) && !switched) || at.cause == Cause::latent_gap || updates_driver(advice)) return;
  const data::GpuRow* gpu = gpu_of(at);
  // A driver that does not drive the GPU is no dead end, but not the whole way either.
  if (serving == DriverSupport::too_old || serving == DriverSupport::too_new) return;
  std::string why = switched ? "it obeys the same switch" : "a driver brings no code for your kernels";
  if (gpu != nullptr && gpu->last_branch != 0) {
    why = fmt::format("it is not the cause, and R{} is the last branch for {} GPUs", gpu->last_branch,
                      gpu->family);
  } else if (serving == DriverSupport::yes) {
    why = switched ? "it serves this GPU already, and obeys the same switch"
                   : "it already supports this GPU, and a driver does not contain your program's kernels";
  }
  advice.dead_ends.push_back(no_driver_update(std::move(why)));
}

}  // namespace

DeadEnd no_driver_update(std::string why) { return {"updating the driver", std::move(why), true}; }

void add_dead_ends(const Facts& at, DriverSupport serving, AdviceDraft& advice) {
  auto& out = advice.dead_ends;
  const bool switched = has_trait(at.cause, core::cause_trait::switched);
  const bool latent = at.cause == Cause::latent_gap;
  add_driver_update(at, serving, advice);
  if (lacks_code(at.cause)) {
    const bool other_kernel = at.cause == Cause::kernel_missing_from_image;
    const data::ToolkitRow* last = last_before_dropped(at);
    if (other_kernel && at.call.by_name) {
      // About the name, not about what was built.
    } else if (is_vendors(at)) {
      // Nobody builds it but NVIDIA.
    } else if (last != nullptr) {
      out.push_back({fmt::format("building with a CUDA newer than {}", name(last->version)),
                     "nvcc refuses this architecture since then"});
    } else if (!other_kernel && !comes_built(at)) {
      out.push_back({"installing another CUDA toolkit without rebuilding",
                     "the file keeps the code it was built with"});
    }
    // Where no image is known, none is known not to fit either.
    if (!latent && (other_kernel || !at.images.have.empty())) {
      out.push_back({"clearing ~/.nv/ComputeCache",
                     other_kernel ? "the kernel is missing in the file, not in the cache"
                                  : "it only holds what was compiled from PTX, and no PTX here fits"});
    }
  }
  const bool of_torch = at.process.torch || at.file.origin == diagnose::Origin::python_extension ||
                        at.file.origin == diagnose::Origin::installed;
  if (lacks_code(at.cause) && ((at.process.python && of_torch) || knows_torch_list(at))) {
    out.push_back({"exporting TORCH_CUDA_ARCH_LIST and running again",
                   "it is read when an extension is built, not when it runs"});
  }
  // What is compiled at run time, an older CUDA does fix.
  if (at.cause == Cause::ptx_newer_than_driver && at.file.origin != diagnose::Origin::memory &&
      !has_other_ways(at)) {
    out.push_back(
        {"installing an older CUDA runtime beside the program", "the PTX in the file keeps its version"});
  }
  if (switched) {
    out.push_back({"rebuilding with the same architectures", "the file already has what this GPU needs"});
  }
  add_attempts(at, advice);
  if (updates_driver(advice)) std::erase_if(out, [](const DeadEnd& row) { return row.of_driver; });
}

}  // namespace kshim::advise
