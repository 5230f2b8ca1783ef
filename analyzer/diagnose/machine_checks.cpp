// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/machine_checks.h"

#include <fmt/core.h>

#include <algorithm>

#include "analyzer/core/gpu_conditions.h"
#include "analyzer/core/text.h"
#include "analyzer/data/knowledge.h"
#include "analyzer/input/machine/gather.h"

namespace kshim::doctor {
namespace {

using analysis::Severity;

void add(Facts& facts, Severity severity, std::string_view id, std::string text, std::string advice = {}) {
  facts.checks.push_back({severity, std::string(id), std::move(text), std::move(advice)});
}

const Library* find(const std::vector<Library>& libraries, std::string_view name) {
  const auto found = std::find_if(libraries.begin(), libraries.end(),
                                  [&](const Library& library) { return library.name == name; });
  return found == libraries.end() ? nullptr : &*found;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// libcuda.so.1 of the toolkit's folder `compat` (cuda-compat): a newer user part for an older kernel module.
bool is_compat(const Library& library) { return contains(library.file.real, "/compat/"); }
bool is_stub(std::string_view path) { return contains(path, "/stubs/"); }

void check_stub(const Loader& loader, const Library* driver, Facts& facts) {
  if (driver != nullptr && (is_stub(driver->file.real) || is_stub(driver->file.path))) {
    add(facts, Severity::error, "stub-driver",
        fmt::format(
            "{} is the toolkit's stub, which is for linking only: every call of the driver fails (34)",
            driver->file.path),
        fmt::format("take that folder out of {}", driver->file.how));
    return;
  }
  for (const std::string& folder : loader.library_path())
    if (is_stub(folder + "/"))
      add(facts, Severity::warning, "stub-folder",
          fmt::format("LD_LIBRARY_PATH has {}, where stubs of the driver are", folder),
          "take it out: it is for -L at link time");
}

void check_versions(const Library& driver, Facts& facts) {
  const std::string& kernel = facts.driver.kernel_module;
  if (is_compat(driver)) {
    add(facts, Severity::warning, "cuda-compat",
        fmt::format("{} is of the forward compatibility package: it works on data center GPUs, and on others "
                    "cuInit answers 804",
                    driver.file.path),
        "on a GeForce or RTX card, update the driver and remove the package");
    return;
  }
  if (kernel.empty() || driver.version.empty() || driver.version == kernel) return;
  add(facts, Severity::error, "driver-mismatch",
      fmt::format("{} is of driver {}, the kernel module is {}: cuInit answers 803", driver.file.path,
                  driver.version, kernel),
      "restart the machine after a driver update; in a container, let the container runtime bring the "
      "library");
}

}  // namespace

void check_driver(const Loader& loader, Facts& facts) {
  const Library* driver = find(facts.libraries, "libcuda.so.1");
  check_stub(loader, driver, facts);
  if (driver == nullptr) {
    const bool hardware = !facts.place.pci.empty() || facts.place.module_loaded || !facts.gpus.empty();
    add(facts, hardware ? Severity::error : Severity::info, "no-libcuda",
        hardware ? "there is an NVIDIA GPU, but no program here finds libcuda.so.1"
                 : "no program here finds libcuda.so.1: there is no NVIDIA driver",
        hardware ? "install the driver; in a container, start it with the GPU (docker run --gpus all)" : "");
  } else {
    check_versions(*driver, facts);
  }
  if (std::string said = analysis::newer_cuda_than_known(facts.driver.cuda); !said.empty())
    add(facts, Severity::info, "newer-driver", "the driver: " + said);
  if (!facts.place.pci.empty() && !facts.place.module_loaded && !facts.place.wsl && !facts.place.container)
    add(facts, Severity::error, "no-kernel-module",
        fmt::format("{} on the PCI bus, and the kernel module nvidia is not loaded",
                    analysis::counted(facts.place.pci.size(), "NVIDIA GPU")),
        "modprobe nvidia; where that fails, dmesg says why (Secure Boot, nouveau, another kernel)");
  if (facts.place.wsl && driver != nullptr && !driver->file.real.starts_with("/usr/lib/wsl/"))
    add(facts, Severity::error, "wsl-driver",
        fmt::format("this is WSL, and {} is a Linux driver's: it hides the one of Windows",
                    driver->file.path),
        "remove the Linux driver package; the driver of Windows is in /usr/lib/wsl/lib");
  if (facts.place.wsl && driver == nullptr)
    add(facts, Severity::error, "wsl-no-driver", "this is WSL, and /usr/lib/wsl/lib is not searched",
        "install NVIDIA's driver in Windows, and see that ld.so.conf names /usr/lib/wsl/lib");
  for (const Gpu& gpu : facts.gpus) {
    const auto* row = gpu.cc ? analysis::find_gpu(*gpu.cc) : nullptr;
    if (gpu.mig)
      add(facts, Severity::info, "mig",
          fmt::format("{} is split (MIG): a program sees one instance of it, named in CUDA_VISIBLE_DEVICES",
                      gpu.name));
    if (row != nullptr && row->last_branch != 0)
      add(facts, Severity::info, "last-branch",
          fmt::format("{} is served by driver branch {} at last", gpu.name, row->last_branch));
  }
}

/// NVIDIA's container runtime starts nothing where they are not met, but for GPUs that come by CDI, whose
/// specification sets NVIDIA_VISIBLE_DEVICES=void so that no hook adds them again.
void check_requirements(const Machine& machine, bool cdi, Facts& facts) {
  for (const char* name : {"NVIDIA_REQUIRE_CUDA", "NVIDIA_REQUIRE_ARCH"}) {
    const std::string_view value = machine.env(name);
    bool met = true;
    for (const Gpu& gpu : facts.gpus) {
      if (value.empty() || !gpu.cc) continue;
      const auto here =
          analysis::meets(*gpu.cc, facts.driver.cuda, analysis::Conditions::nvidia_require, value);
      if (here.value_or(true)) continue;
      met = false;
      add(facts, Severity::error, "require-not-met",
          fmt::format("{}={} of this container is not met by {} ({}{})", name, value, gpu.name,
                      image::to_name(*gpu.cc).view(),
                      facts.driver.cuda.known()
                          ? fmt::format(", CUDA {}", image::to_name(facts.driver.cuda).view())
                          : std::string()),
          "run the image on a host that it is for");
    }
    if (cdi && met && !value.empty())
      add(facts, Severity::info, "require-not-evaluated",
          fmt::format(
              "{}={} keeps this container from no host: the GPUs came by CDI, which does not evaluate it",
              name, value),
          "kshim doctor in the container does");
  }
}

void check_place(const Machine& machine, Facts& facts) {
  const std::string_view visible = machine.env("NVIDIA_VISIBLE_DEVICES");
  const bool wanted = !visible.empty() && visible != "void" && visible != "none";
  const bool nodes = !facts.place.device_nodes.empty();
  if (wanted && !nodes && !facts.place.wsl)
    add(facts, Severity::error, "container-without-gpu",
        fmt::format(
            "NVIDIA_VISIBLE_DEVICES={} asks for GPUs, and there is no /dev/nvidia*: this container was "
            "started without them",
            visible),
        "docker run --gpus all (or the runtime class nvidia); on the host: nvidia-ctk runtime configure");
  check_requirements(machine, visible == "void", facts);
  const std::string_view capabilities = machine.env("NVIDIA_DRIVER_CAPABILITIES");
  if (wanted && !capabilities.empty() && !contains(capabilities, "compute") && !contains(capabilities, "all"))
    add(facts, Severity::error, "container-capabilities",
        fmt::format("NVIDIA_DRIVER_CAPABILITIES={} leaves libcuda.so.1 out of the container", capabilities),
        "set it to compute,utility");
  if (!facts.place.denied.empty())
    add(facts, Severity::error, "device-rights",
        fmt::format("this user may not open {}", analysis::enumerate(facts.place.denied)),
        "see their owner and group; add the user to the group, or fix the udev rule");
  const auto has = [&](std::string_view name) {
    return std::find(facts.place.device_nodes.begin(), facts.place.device_nodes.end(), name) !=
           facts.place.device_nodes.end();
  };
  if (has("/dev/nvidia0") && !has("/dev/nvidia-uvm"))
    add(facts, Severity::warning, "no-uvm",
        "/dev/nvidia-uvm is missing: cuInit answers 999 where it cannot make it itself",
        "modprobe nvidia-uvm, or nvidia-modprobe -u -c 0");
  if (machine.has_env("CUDA_VISIBLE_DEVICES")) check_visible_devices(machine, facts);
  for (const analysis::SwitchRow& row : analysis::switches()) {
    const std::string_view value = machine.env(row.variable);
    if (!value.empty() && value != "0")
      add(facts, Severity::warning, "jit-switch",
          fmt::format("{}={} tells the driver to {}", row.variable, value, row.effect),
          fmt::format("unset {}", row.variable));
  }
}

void check_toolkits(const Machine& machine, Facts& facts) {
  const auto by = [&](std::string_view variable) -> const Toolkit* {
    for (const Toolkit& toolkit : facts.toolkits)
      for (const std::string& known : toolkit.known_by)
        if (known == variable) return &toolkit;
    return nullptr;
  };
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const std::string_view value = machine.env(variable); !value.empty() && by(variable) == nullptr)
      add(facts, Severity::warning, "toolkit-gone", fmt::format("{}={} holds no toolkit", variable, value),
          fmt::format("correct or unset {}", variable));
  const Toolkit* home = by("CUDA_HOME");
  const Toolkit* path = by("PATH");
  if (home != nullptr && path != nullptr && home != path)
    add(facts, Severity::warning, "two-toolkits",
        fmt::format(
            "CUDA_HOME is {} ({}), and nvcc in PATH is of {} ({}): build systems differ in which they take",
            home->folder, image::to_name(home->version).view(), path->folder,
            image::to_name(path->version).view()),
        fmt::format("PATH={}/bin:$PATH", home->folder));
  for (const Toolkit& toolkit : facts.toolkits) {
    if (facts.driver.cuda.known() && toolkit.version.known() && toolkit.version > facts.driver.cuda)
      add(facts, Severity::warning, "toolkit-newer-than-driver",
          fmt::format(
              "the toolkit in {} is {}, the driver serves CUDA {}: PTX that it makes is refused (222), and "
              "programs of a newer major do not start (35)",
              toolkit.folder, image::to_name(toolkit.version).view(),
              image::to_name(facts.driver.cuda).view()),
          "build for the GPU's own architecture, or update the driver");
    const auto* row = analysis::toolkit_at_most(toolkit.version);
    for (const Gpu& gpu : facts.gpus) {
      if (!toolkit.compiler || row == nullptr || !gpu.cc || row->version != toolkit.version) continue;
      const image::Arch arch{*gpu.cc, image::Suffix::none};
      if (analysis::builds_for(*row, arch)) continue;
      const auto* last = analysis::last_toolkit_for(arch);
      add(facts, Severity::warning, "toolkit-without-arch",
          fmt::format("the toolkit in {} ({}) does not build for {} (sm_{})", toolkit.folder,
                      image::to_name(toolkit.version).view(), gpu.name, gpu.cc->number()),
          last != nullptr && last->version < toolkit.version
              ? fmt::format("the last that does is {}", image::to_name(last->version).view())
              : "a newer one does");
    }
  }
}

}  // namespace kshim::doctor
