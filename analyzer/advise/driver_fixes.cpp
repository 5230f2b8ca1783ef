// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/fixes.h"
#include "kshim/image/compute_capability.h"
#include "kshim/image/decompress.h"

namespace kshim::advise {
using data::DriverSupport;
using data::GpuRow;
using data::toolkit_at_most;
using data::ToolkitRow;
using diagnose::Facts;
using say::UpdateDriver;

namespace {

using image::Version;

// The rejected PTX version: the one in the message, otherwise the oldest PTX image.
Version refused_isa(const Facts& at) {
  if (at.images.ptx.known()) return at.images.ptx;
  Version isa;
  for (const image::Candidate& image : at.images.have) {
    if (image.kind == image::ImageKind::ptx && (!isa.known() || image.isa < isa) && image.isa.known())
      isa = image.isa;
  }
  return isa;
}

// Whether the toolkit that is known made the PTX: beside a finished program, a log names that of its user,
// unless it is newer than the driver and so explains the failure.
bool made_ptx(const Facts& at) {
  const bool finished = at.package.released || comes_built(at);
  return at.images.toolkit.known() &&
         (!finished || at.file.origin == diagnose::Origin::memory || !at.package.variant.empty() ||
          toolkit_that_driver_reads(at) != nullptr);
}

// The minimum CUDA version of the driver: from the PTX version, otherwise from the toolkit that made the PTX,
// otherwise the next release after its own.
Version needed_cuda(const Facts& at, Version isa) {
  if (isa.known()) return image::cuda_of_ptx_isa(isa);
  // Bytecode of Tile IR is numbered as the CUDA that reads it.
  for (const image::Candidate& image : at.images.have) {
    if (image.kind == image::ImageKind::tileir) return image.isa;
  }
  if (!at.images.have.empty()) return {};
  const ToolkitRow* reads = toolkit_that_driver_reads(at);
  if (made_ptx(at) && (reads == nullptr || reads->isa < image::ptx_isa_of_cuda(at.images.toolkit)))
    return at.images.toolkit;
  if (reads == nullptr) return {};
  for (const ToolkitRow& row : data::toolkits()) {
    if (reads->isa < row.isa) return row.version;
  }
  return {};
}

/// The newest CUDA whose drivers support the GPU; unknown where that has not ended.
Version last_cuda(const GpuRow* gpu) { return gpu != nullptr ? last_driver_cuda(*gpu) : Version{}; }

bool has_driver(const Facts& at, std::string_view of_linux) {
  // A container may have an older library than the kernel module: both have to be new enough.
  const ToolkitRow* row = toolkit_at_most(at.driver.cuda);
  const bool by_library = row == nullptr || data::compare_releases(row->driver, of_linux) >= 0;
  const bool by_module =
      at.driver.module.empty() ||
      data::compare_releases(at.driver.module, say::driver_release(of_linux, has_windows_driver(at))) >= 0;
  return (row != nullptr || !at.driver.module.empty()) && by_library && by_module;
}

FixDraft update(UpdateDriver driver, std::string why, std::string caveat = {}) {
  FixDraft fix{{core::FixKind::upgrade_driver, "", {}, std::move(why), std::move(caveat), "update-driver"}};
  fix.steps.push_back({{{.action = std::move(driver)}}});
  return fix;
}

std::string last_branch(const GpuRow& gpu) {
  return fmt::format("R{} is the last driver branch for {} GPUs", gpu.last_branch, gpu.family);
}

// A driver update helps only as far as the GPU is still supported.
void add_driver_fix(const Facts& at, AdviceDraft& advice) {
  const Version isa = refused_isa(at);
  const GpuRow* gpu = gpu_of(at);
  const Version last = last_cuda(gpu);
  Version needed = needed_cuda(at, isa);
  if (needed.known() && last.known() && needed > last) {
    advice.dead_ends.push_back(
        no_driver_update(fmt::format("{} and reads PTX for CUDA {} at most; this PTX needs CUDA {}",
                                     last_branch(*gpu), name(last), name(needed))));
    return;
  }
  const bool tegra = gpu != nullptr && gpu->tegra;
  // No JetPack brings a newer one to a Jetson whose own have ended.
  if (tegra && needed.known() && !data::can_ever_run(at.gpu.cc, needed)) return;
  // Nor one that does not know the GPU.
  if (gpu != nullptr && needed.known() && needed < gpu->first_toolkit) needed = gpu->first_toolkit;
  UpdateDriver driver;
  std::string why = "a newer driver reads newer PTX";
  const ToolkitRow* row = toolkit_at_most(needed);
  if (row != nullptr && !row->driver.empty()) {
    const ToolkitRow* reads = toolkit_that_driver_reads(at);
    driver = driver_from(at, row->driver);
    why = isa.known() || made_ptx(at) || reads == nullptr
              ? fmt::format("drivers for CUDA {} and newer read PTX {}", name(needed),
                            name(isa.known() ? isa : row->isa))
              : fmt::format(
                    "it is the first driver that reads PTX newer than {}; the log does not state the PTX "
                    "version",
                    name(reads->isa));
  }
  driver.jetpack = tegra;
  advice.fixes.push_back(update(std::move(driver), std::move(why), last.known() ? within_branch(*gpu) : ""));
}

// PTX without a file was made at run time, by NVRTC or what is built on it: its version is that of this
// compiler.
void add_older_compiler_fix(const Facts& at, FixDrafts& fixes) {
  const ToolkitRow* row = toolkit_that_driver_reads(at);
  if (row == nullptr || (at.gpu.cc && !plan_build({}, *at.gpu.cc, *row, row->version))) return;
  fixes.push_back(fix_of("compile-with-older-cuda", {{"cuda", name(row->version)}, {"isa", name(row->isa)}}));
}

}  // namespace

UpdateDriver driver_from(const Facts& at, std::string_view of_linux, Version cuda) {
  if (of_linux.empty() || !has_driver(at, of_linux)) return {std::string(of_linux), cuda};
  return {at.driver.module, at.driver.cuda, true};
}

std::string within_branch(const GpuRow& gpu) {
  return fmt::format("stay within branch R{}: it is the last one for this GPU", gpu.last_branch);
}

std::string driver_to_keep(const Facts& at) {
  const GpuRow* gpu = gpu_of(at);
  if (gpu == nullptr || gpu->last_branch == 0) return {};
  return fmt::format("keep the driver within R{}, the last branch for {} GPUs", gpu->last_branch,
                     gpu->family);
}

const ToolkitRow* toolkit_that_driver_reads(const Facts& at) {
  if (at.driver.cuda.known()) return toolkit_at_most(at.driver.cuda);
  return at.driver.reads.known() ? data::toolkit_of_isa(at.driver.reads) : nullptr;
}

void add_newer_ptx_fixes(const Facts& at, AdviceDraft& advice) {
  const bool at_run_time = at.file.origin == diagnose::Origin::memory;
  const bool closed = at.file.origin == diagnose::Origin::installed || at.package.released;
  // Without a list of images, the log may be about a binary that the reader cannot rebuild.
  const bool driver_first = closed || at.images.have.empty();
  const bool compiled_here = at_run_time && !at.file.loose;
  bool asked = false;  // once
  if (compiled_here) {
    // A program that compiles for the present GPU gains nothing from a build for that GPU.
    if (!add_other_ways(at, advice.fixes)) {
      // A package that came built brings its compiler along.
      asked = comes_built(at);
      if (asked)
        add_driver_fix(at, advice);
      else
        add_older_compiler_fix(at, advice.fixes);
      add_wheel_fix(at, advice.fixes);
    }
  } else {
    if (at_run_time) add_older_compiler_fix(at, advice.fixes);
    if (driver_first) add_driver_fix(at, advice);
    const ToolkitRow* row = toolkit_that_driver_reads(at);
    if (!at_run_time && !closed && (!at.gpu.cc || at.images.have.empty()))
      advice.fixes.push_back(row == nullptr ? fix_of("build-for-driver")
                                            : fix_of("build-with-older-cuda", {{"cuda", name(row->version)},
                                                                               {"isa", name(row->isa)}}));
    // Of what came built, an older build is what its user can take.
    if (closed && !at_run_time && row != nullptr)
      advice.fixes.push_back(
          fix_of("use-older-build/cuda", {{"cuda", name(row->version)}, {"isa", name(row->isa)}}));
    add_rebuild_fixes(at, advice.fixes);
  }
  if (!asked && (compiled_here || !driver_first)) add_driver_fix(at, advice);
}

// Within a CUDA major version, an older driver reads newer cubins.
void add_newer_driver_fixes(const Facts& at, AdviceDraft& advice) {
  const Version cubin = diagnose::newest_cubin(at.images);
  const bool newer_cubin = cubin.major > at.driver.cuda.major;
  const Version needed = newer_cubin ? Version{cubin.major, 0} : image::kFirstZstdDriver;
  const GpuRow* gpu = gpu_of(at);
  const ToolkitRow* row = toolkit_at_most(needed);
  if (last_cuda(gpu).known() && needed > last_cuda(gpu)) {
    advice.dead_ends.push_back(no_driver_update(last_branch(*gpu)));
  } else if (row != nullptr) {
    advice.fixes.push_back(update(
        driver_from(at, row->driver, needed),
        newer_cubin ? fmt::format("drivers for CUDA {} and newer read the cubins of CUDA {}.x", name(needed),
                                  needed.major)
                    : fmt::format("drivers for CUDA {} and newer read compressed images", name(needed))));
  }
  if (newer_cubin && at.gpu.cc) add_rebuild_for_driver(at, advice.fixes);
}

std::string_view oldest_driver(const Facts& at, unsigned major) {
  const ToolkitRow* row = toolkit_at_most({static_cast<std::uint16_t>(major), 0});
  if (row == nullptr || row->version.major != major) return {};
  const GpuRow* gpu = gpu_of(at);
  const ToolkitRow* first = gpu != nullptr ? data::find_toolkit(gpu->first_toolkit) : nullptr;
  const bool later = first != nullptr && first->version.major == major && !first->driver.empty();
  return later ? first->driver : row->minor_driver;
}

namespace {

// The driver that a newer runtime asks for at least, " to 525.60.13 or newer": since CUDA 11 one driver runs
// all releases of its major version.
std::string driver_beyond(const Facts& at) {
  const bool by_major = at.driver.cuda.major >= 11;
  for (const ToolkitRow& row : data::toolkits()) {
    if (by_major ? row.version.major <= at.driver.cuda.major : !(at.driver.cuda < row.version)) continue;
    const std::string_view driver = by_major ? oldest_driver(at, row.version.major) : row.driver;
    return driver.empty() ? std::string() : goal_of(driver_from(at, driver), has_windows_driver(at));
  }
  return {};
}

}  // namespace

// 35: within a CUDA major version any driver of that version will do; an image of a container names the minor
// version, too.
void add_runtime_fixes(const Facts& at, AdviceDraft& advice) {
  if (at.call.code != core::kInsufficientDriver && !at.driver.asked_by_container) return;
  const GpuRow* gpu = gpu_of(at);
  const Version last = last_cuda(gpu);
  if (!at.driver.runtime.known()) {
    const bool newest = last.known() && !(at.driver.cuda < last);
    if (!at.driver.cuda.known() && !at.driver.module.empty())
      advice.fixes.push_back(fix_of("take-newer-driver/number", {{"driver", at.driver.module}}));
    if (at.driver.cuda.known())
      advice.fixes.push_back(fix_of(newest ? "use-older-build/program" : "take-newer-driver",
                                    {{"cuda", name(at.driver.cuda)},
                                     {"major", std::to_string(at.driver.cuda.major)},
                                     {"release", driver_beyond(at)}}));
    return;
  }
  const ToolkitRow* row = toolkit_at_most(at.driver.runtime);
  const bool beyond = last.known() && (at.driver.asked_by_container ? last < at.driver.runtime
                                                                    : last.major < at.driver.runtime.major);
  const bool known = row != nullptr && row->version.major == at.driver.runtime.major;
  // Before CUDA 11 each release asks for a driver of its own.
  const bool by_release = at.driver.asked_by_container || at.driver.runtime.major < 11;
  const std::string_view oldest = !by_release ? oldest_driver(at, at.driver.runtime.major)
                                  : known     ? row->driver
                                              : "";
  if (add_wheel_for_driver(at, advice.fixes)) {
    // The shortest way: no driver of the machine is touched.
  } else if (beyond && at.gpu.cc && !at.package.name.empty()) {
    const std::size_t before = advice.fixes.size();
    add_source_build(at, advice.fixes);
    if (advice.fixes.size() == before) add_wheel_fix(at, advice.fixes);
  }
  if (beyond) {
    advice.dead_ends.push_back(
        no_driver_update(fmt::format("{}, and serves CUDA {} at most", last_branch(*gpu), name(last))));
  } else if (!oldest.empty() && !(by_release && !at.driver.asked_by_container && has_driver(at, oldest))) {
    advice.fixes.push_back(update(
        driver_from(at, oldest),
        at.driver.asked_by_container
            ? fmt::format("that is the first for CUDA {}, which the image asks for", name(at.driver.runtime))
        : by_release ? fmt::format("that is the oldest that CUDA {} runs on", name(at.driver.runtime))
                     : fmt::format("that is the oldest that CUDA {}.x runs on", at.driver.runtime.major),
        at.gpu.cc ? "" : "if newer drivers no longer support your GPU, use one of the other fixes"));
  }
  if (!at.driver.cuda.known() && at.driver.asked_by_container)
    advice.fixes.push_back(fix_of("use-older-image"));
  if (at.driver.cuda.known() && at.driver.cuda < at.driver.runtime)
    advice.fixes.push_back(
        fix_of(at.driver.asked_by_container ? "use-older-build/image" : "use-older-build/program",
               {{"cuda", name(at.driver.cuda)}, {"major", std::to_string(at.driver.cuda.major)}}));
}

namespace {

// "550.54.15, for CUDA 12.4", and what of it is known.
std::string described(const Facts& at) {
  if (!at.driver.cuda.known()) return at.driver.module;
  const std::string cuda = fmt::format("for CUDA {}", name(at.driver.cuda));
  return at.driver.module.empty() ? cuda : fmt::format("{}, {}", at.driver.module, cuda);
}

}  // namespace

DriverSupport driver_support(const Facts& at) {
  const GpuRow* gpu = gpu_of(at);
  return gpu == nullptr ? DriverSupport::unknown : driver_support(*gpu, at.driver.cuda, at.driver.module);
}

void add_gpu_driver_fix(const Facts& at, DriverSupport serving, FixDrafts& fixes) {
  if (serving != DriverSupport::too_old && serving != DriverSupport::too_new) return;
  const GpuRow& gpu = *data::find_gpu(*at.gpu.cc);
  if (serving == DriverSupport::too_new) {
    fixes.push_back(fix_of("install-driver-branch", {{"branch", std::to_string(gpu.last_branch)},
                                                     {"family", std::string(gpu.family)}}));
    return;
  }
  const ToolkitRow* first = data::find_toolkit(gpu.first_toolkit);
  UpdateDriver driver = driver_from(at, first != nullptr ? first->driver : "", gpu.first_toolkit);
  driver.jetpack = gpu.tegra;
  FixDraft fix = update(std::move(driver), "the driver does not support this GPU, so no build can run on it",
                        gpu.last_branch != 0 ? within_branch(gpu) : "");
  if (first != nullptr) fix.arguments = {{"driver", std::string(first->driver)}};
  fixes.push_back(std::move(fix));
}

Facts with_supported_driver(const Facts& at, DriverSupport serving) {
  Facts out = at;
  if (serving != DriverSupport::too_old && serving != DriverSupport::too_new) return out;
  const GpuRow& gpu = *data::find_gpu(*at.gpu.cc);
  out.driver.cuda = serving == DriverSupport::too_old ? gpu.first_toolkit : last_driver_cuda(gpu);
  out.driver.module.clear();
  return out;
}

void add_driver_remark(const Facts& at, DriverSupport serving, std::vector<std::string>& remarks) {
  switch (serving) {
    case DriverSupport::unknown:
      // A GPU that no table knows.
      return;
    case DriverSupport::yes:
      if (at.driver.cuda.known() && at.driver.runtime.major <= at.driver.cuda.major)
        remarks.push_back(fmt::format("Your driver ({}) is fine.", described(at)));
      return;
    case DriverSupport::too_old:
    case DriverSupport::too_new: {
      const GpuRow& gpu = *data::find_gpu(*at.gpu.cc);
      const std::string limit =
          serving == DriverSupport::too_old
              ? fmt::format(
                    "the drivers that came with CUDA {} are the first that know compute capability {}",
                    name(gpu.first_toolkit), name(gpu.cc))
              : fmt::format("R{} is the last branch for {} GPUs", gpu.last_branch, gpu.family);
      remarks.push_back(fmt::format(
          "A driver {}does not support this GPU: {}. The reported driver and GPU do not match: with this "
          "driver a program sees no such GPU. kshim doctor says what the machine has.",
          at.driver.cuda.known() ? fmt::format("for CUDA {} ", name(at.driver.cuda))
                                 : fmt::format("of version {} ", at.driver.module),
          limit));
      return;
    }
  }
}

}  // namespace kshim::advise
