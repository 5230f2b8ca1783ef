// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/machine_checks.h"

#include "analyzer/core/gpu_conditions.h"
#include "analyzer/core/text.h"
#include "analyzer/data/knowledge.h"
#include "analyzer/input/machine/facts.h"
#include "kshim/base/visible_devices.h"

namespace kshim::doctor {
namespace {

void add(Facts& facts, Severity severity, std::string_view id, std::string text, std::string advice = {}) {
  facts.checks.push_back({severity, std::string(id), std::move(text), std::move(advice)});
}

const Library* find(const std::vector<Library>& libraries, std::string_view name) {
  const auto found = std::ranges::find(libraries, name, &Library::name);
  return found == libraries.end() ? nullptr : &*found;
}

/// libcuda.so.1 of the toolkit's folder `compat` (cuda-compat): a newer user part for an older kernel module.
bool is_compat(const Library& library) { return contains(library.file.real, "/compat/"); }
bool is_stub(std::string_view path) { return contains(path, "/stubs/"); }

void check_stub(const Loader& loader, const Library* driver, Facts& facts) {
  if (driver != nullptr && (is_stub(driver->file.real) || is_stub(driver->file.path))) {
    add(facts, Severity::error, "stub-driver",
        fmt::format("{} is the toolkit's link-time stub: every driver call fails with error 34",
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
        fmt::format("{} belongs to the forward compatibility package, which works only on data center GPUs: "
                    "on others cuInit returns 804",
                    driver.file.path),
        "on a GeForce or RTX card, update the driver and remove the package");
    return;
  }
  if (kernel.empty() || driver.version.empty() || driver.version == kernel) return;
  add(facts, Severity::error, "driver-mismatch",
      fmt::format("{} belongs to driver {}, but the kernel module is {}: cuInit returns 803",
                  driver.file.path, driver.version, kernel),
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
        hardware ? "there is an NVIDIA GPU, but libcuda.so.1 is not in the search path"
                 : "no program here finds libcuda.so.1: there is no NVIDIA driver",
        hardware ? "install the driver; in a container, start it with the GPU (docker run --gpus all)" : "");
  } else {
    check_versions(*driver, facts);
  }
  if (std::string said = newer_cuda_than_known(facts.driver.cuda); !said.empty())
    add(facts, Severity::info, "newer-driver", "the driver: " + said);
  if (!facts.place.pci.empty() && !facts.place.module_loaded && !facts.place.wsl && !facts.place.container)
    add(facts, Severity::error, "no-kernel-module",
        fmt::format("{} on the PCI bus, and the kernel module nvidia is not loaded",
                    counted(facts.place.pci.size(), "NVIDIA GPU")),
        "modprobe nvidia; where that fails, dmesg says why (Secure Boot, nouveau, another kernel)");
  if (facts.place.wsl && driver != nullptr && !driver->file.real.starts_with("/usr/lib/wsl/"))
    add(facts, Severity::error, "wsl-driver",
        fmt::format("this is WSL, and {} belongs to a Linux driver, which hides the Windows driver",
                    driver->file.path),
        "remove the Linux driver package; the driver of Windows is in /usr/lib/wsl/lib");
  if (facts.place.wsl && driver == nullptr)
    add(facts, Severity::error, "wsl-no-driver", "this is WSL, and /usr/lib/wsl/lib is not searched",
        "install NVIDIA's driver in Windows, and see that ld.so.conf names /usr/lib/wsl/lib");
  for (const Gpu& gpu : facts.gpus) {
    const auto* row = gpu.cc ? find_gpu(*gpu.cc) : nullptr;
    if (gpu.mig)
      add(facts, Severity::info, "mig",
          fmt::format("{} is split (MIG): a program sees one instance of it, named in CUDA_VISIBLE_DEVICES",
                      gpu.name));
    if (row != nullptr && row->last_branch != 0)
      add(facts, Severity::info, "last-branch",
          fmt::format("driver branch {1} is the last that supports {0}", gpu.name, row->last_branch));
  }
}

/// NVIDIA's container runtime refuses to start a container whose requirements are not met, except in CDI
/// mode, whose specification sets NVIDIA_VISIBLE_DEVICES=void so that no hook adds them again.
void check_requirements(const Machine& machine, bool cdi, Facts& facts) {
  for (const char* name : {"NVIDIA_REQUIRE_CUDA", "NVIDIA_REQUIRE_ARCH"}) {
    const std::string_view value = machine.env(name);
    bool met = true;
    for (const Gpu& gpu : facts.gpus) {
      if (value.empty() || !gpu.cc) continue;
      const auto here = meets(*gpu.cc, facts.driver.cuda, Conditions::nvidia_require, value);
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
              "{}={} was not checked at container start: the GPUs were added through CDI, which ignores it",
              name, value),
          "kshim doctor checks it in the container");
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
        fmt::format("this user may not open {}", enumerate(facts.place.denied)),
        "see their owner and group; add the user to the group, or fix the udev rule");
  const auto has = [&](std::string_view name) { return contains(facts.place.device_nodes, name); };
  if (has("/dev/nvidia0") && !has("/dev/nvidia-uvm"))
    add(facts, Severity::warning, "no-uvm",
        "/dev/nvidia-uvm is missing: cuInit returns 999 if it cannot create it",
        "modprobe nvidia-uvm, or nvidia-modprobe -u -c 0");
  if (machine.has_env("CUDA_VISIBLE_DEVICES")) check_visible_devices(machine, facts);
  for (const SwitchRow& row : switches()) {
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
      add(facts, Severity::warning, "toolkit-gone", fmt::format("{}={} contains no toolkit", variable, value),
          fmt::format("correct or unset {}", variable));
  const Toolkit* home = by("CUDA_HOME");
  const Toolkit* path = by("PATH");
  if (home != nullptr && path != nullptr && home != path)
    add(facts, Severity::warning, "two-toolkits",
        fmt::format("CUDA_HOME is {} ({}), and nvcc in PATH is of {} ({}): build systems differ in which one "
                    "they use",
                    home->folder, name(home->version), path->folder, name(path->version)),
        fmt::format("PATH={}/bin:$PATH", home->folder));
  for (const Toolkit& toolkit : facts.toolkits) {
    if (const std::string said = newer_cuda_than_known(toolkit.version); !said.empty())
      add(facts, Severity::info, "newer-toolkit", fmt::format("the toolkit in {}: {}", toolkit.folder, said));
    if (facts.driver.cuda.known() && toolkit.version.known() && toolkit.version > facts.driver.cuda)
      add(facts, Severity::warning, "toolkit-newer-than-driver",
          fmt::format("the toolkit in {} is {}, the driver supports CUDA {}: it rejects PTX from this "
                      "toolkit (error 222), and "
                      "programs of a newer major do not start (35)",
                      toolkit.folder, name(toolkit.version), name(facts.driver.cuda)),
          "build for the GPU's own architecture, or update the driver");
    const auto* row = toolkit_at_most(toolkit.version);
    for (const Gpu& gpu : facts.gpus) {
      if (!toolkit.compiler || row == nullptr || !gpu.cc || row->version != toolkit.version) continue;
      const image::Arch arch{*gpu.cc, image::Suffix::none};
      if (builds_for(*row, arch)) continue;
      const auto* last = last_toolkit_for(arch);
      add(facts, Severity::warning, "toolkit-without-arch",
          fmt::format("the toolkit in {} ({}) does not build for {} (sm_{})", toolkit.folder,
                      name(toolkit.version), gpu.name, gpu.cc->number()),
          last != nullptr && last->version < toolkit.version
              ? fmt::format("the last that does is {}", name(last->version))
              : "a newer one does");
    }
  }
}

namespace {

/// "libcudart" and "13" of libcudart.so.13.
std::pair<std::string, std::string> parts_of(const std::string& name) {
  const std::size_t mark = name.find(".so.");
  if (mark == std::string::npos) return {name, {}};
  const std::string version = name.substr(mark + 4);
  return {name.substr(0, mark), version.substr(0, version.find('.'))};
}

/// "12.8.4.1" and "12.9" differ, "12.8" and "12.8.4.1" do not: a file's name may say less than it is.
bool differ(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return false;
  const std::vector<std::string> left = split(a, ".");
  const std::vector<std::string> right = split(b, ".");
  return !std::equal(left.begin(),
                     left.begin() + static_cast<std::ptrdiff_t>(std::min(left.size(), right.size())),
                     right.begin());
}

/// The wheels' and conda's folders: their own programs and modules look there first, by RPATH, unless
/// LD_LIBRARY_PATH goes before it.
std::vector<std::string> environment_folders(const Machine& machine, const Facts& facts) {
  std::vector<std::string> out;
  for (const Python& python : facts.pythons)
    out.insert(out.end(), python.library_folders.begin(), python.library_folders.end());
  if (const std::string_view conda = machine.env("CONDA_PREFIX"); !conda.empty())
    out.push_back(join_path(conda, "lib"));
  return out;
}

/// Files in LD_LIBRARY_PATH that stand before a different copy of an environment's.
void check_shadows(const Machine& machine, const Loader& loader, Facts& facts) {
  for (const std::string& folder : environment_folders(machine, facts)) {
    std::vector<std::string> shadowed;
    std::string by;
    for (const std::string& name : machine.names(folder)) {
      if (!is_cuda_library(name) || parts_of(name).second.empty()) continue;
      const auto found = loader.find(name);
      const std::string own = machine.real(join_path(folder, name));
      if (!found || found->how != "LD_LIBRARY_PATH" || found->real == own) continue;
      shadowed.push_back(name);
      by = found->path.substr(0, found->path.rfind('/'));
    }
    if (shadowed.empty()) continue;
    const std::size_t count = shadowed.size();
    if (count > 3) shadowed.resize(3);
    add(facts, Severity::warning, "shadowed-libraries",
        fmt::format("LD_LIBRARY_PATH puts {} in {} before {} in {}", enumerate(shadowed), by,
                    count == 1 ? "the one" : "those", folder),
        "unset LD_LIBRARY_PATH where a Python environment brings its own CUDA");
  }
}

void check_copies(const Loader& loader, Facts& facts) {
  for (const Library& library : facts.libraries) {
    for (const FoundFile& other : loader.all(library.name)) {
      const std::string version = version_in_name(other.real);
      if (other.real == library.file.real || !differ(library.version, version)) continue;
      add(facts, Severity::warning, "two-copies",
          fmt::format("two copies of {}: programs load {} ({}, through {}); without that path they would "
                      "load {} ({}, through {})",
                      library.name, library.file.path, library.version, library.file.how, other.path, version,
                      other.how),
          "keep one of them");
    }
  }
}

/// Wheels built for several majors of CUDA, in one environment: nvidia-cublas-cu12 beside -cu11.
void check_wheels(Facts& facts) {
  for (const Python& python : facts.pythons) {
    std::map<std::string, std::set<std::string>> majors;
    for (const PythonWheel& wheel : python.wheels) {
      const std::size_t mark = wheel.name.rfind("-cu");
      if (!wheel.name.starts_with("nvidia-") || mark == std::string::npos) continue;
      const std::string major = wheel.name.substr(mark + 3);
      if (major.find_first_not_of("0123456789") == std::string::npos && !major.empty())
        majors[wheel.name.substr(0, mark)].insert(major);
    }
    for (const auto& [name, found] : majors) {
      if (found.size() < 2) continue;
      add(facts, Severity::warning, "mixed-wheels",
          fmt::format("{} has {} for CUDA {}: import order decides which one a process loads",
                      python.interpreter, name,
                      enumerate(std::vector<std::string>(found.begin(), found.end()))),
          fmt::format("pip uninstall {}-cu{}", name, *found.begin()));
    }
  }
}

void check_preloads(Facts& facts) {
  for (const Preload& preload : facts.preloads) {
    if (!preload.there)
      add(facts, Severity::warning, "preload-missing",
          fmt::format(
              "LD_PRELOAD names {}, which does not exist: the loader prints an error in every program",
              preload.path),
          "correct LD_PRELOAD or /etc/ld.so.preload");
    if (preload.note.starts_with("stands in for dlsym"))
      add(facts, Severity::info, "preload-dlsym", fmt::format("{} {}", preload.path, preload.note));
  }
}

}  // namespace

void check_libraries(const Machine& machine, const Loader& loader, Facts& facts) {
  check_shadows(machine, loader, facts);
  check_copies(loader, facts);
  check_wheels(facts);
  check_preloads(facts);
}

void check_program(Facts& facts) {
  if (!facts.program) return;
  const Program program = *facts.program;
  if (!program.found) {
    add(facts, Severity::error, "program-missing",
        fmt::format("{} is not there, or cannot be read", program.path));
    return;
  }
  if (!program.elf) {
    add(facts, Severity::error, "program-unknown",
        fmt::format("{} is neither a program nor a script with an interpreter", program.path));
    return;
  }
  if (!program.blind.empty())
    add(facts, Severity::warning, "blind",
        fmt::format("libkshim.so cannot watch {}: {}", program.path, program.blind),
        "where its source is at hand, link it dynamically; kshim scan reads what it is built for");
  if (!program.deepbind.empty())
    add(facts, Severity::warning, "deepbind",
        fmt::format("{} opens libraries with RTLD_DEEPBIND ({}): their CUDA calls bypass libkshim.so",
                    program.path, program.deepbind),
        "kshim run --audit sees most of it");
  for (const std::string& file : program.dlmopen)
    add(facts, Severity::info, "dlmopen",
        fmt::format("{} can load files into namespaces of their own (dlmopen), where nothing is preloaded",
                    file));
  for (const std::string& missing : program.missing)
    add(facts, Severity::error, "library-not-found", fmt::format("no file for {}", missing),
        "install it, or name its folder in LD_LIBRARY_PATH");
  std::map<std::string, std::map<std::string, std::string>> majors;
  for (const Library& library : program.libraries) {
    const auto [name, major] = parts_of(library.name);
    if (!major.empty()) majors[name].emplace(major, library.file.path);
  }
  for (const auto& [name, found] : majors) {
    if (found.size() < 2) continue;
    std::vector<std::string> files;
    for (const auto& [major, path] : found) files.push_back(path);
    add(facts, Severity::warning, "mixed-cuda-libraries",
        fmt::format("{} is linked to several majors of {}: {}", program.path, name, enumerate(files)),
        "rebuild all of it with one toolkit");
  }
}

namespace {

void warn(Facts& facts, std::string_view id, std::string text, std::string advice) {
  facts.checks.push_back({Severity::warning, std::string(id), std::move(text), std::move(advice)});
}

}  // namespace

void check_visible_devices(const Machine& machine, Facts& facts) {
  const std::string_view value = machine.env("CUDA_VISIBLE_DEVICES");
  const bool no_uuids = std::ranges::all_of(facts.gpus, [](const Gpu& gpu) { return gpu.uuid.empty(); });
  bool comparable = true;
  const VisibleDevices got =
      read_visible_devices(value, [&](std::string_view item) -> std::optional<std::size_t> {
        // Instances of a split GPU are not listed here.
        comparable = comparable && !item.starts_with("MIG-") && !(item.starts_with("GPU-") && no_uuids);
        for (std::size_t i = 0; i < facts.gpus.size(); ++i) {
          const bool by_uuid =
              item.size() > 4 && item.starts_with("GPU-") && facts.gpus[i].uuid.starts_with(item);
          if (by_uuid || item == std::to_string(i)) return i;
        }
        return std::nullopt;
      });
  if (!comparable) return;
  // Without a driver to ask there is no list to compare with, but for what hides everything anywhere.
  const bool hides = value.empty() || got.stranger == "-1" || value == "NoDevFiles";
  if (facts.gpus.empty() && !hides) return;
  if (got.shown.empty())
    warn(facts, "hidden-devices",
         fmt::format(
             "CUDA_VISIBLE_DEVICES='{}' hides every GPU{}: programs get error 100 (no device)", value,
             got.twice ? ", as far as is known, for it names one twice"
             : hides   ? ""
                     : fmt::format(", for '{}' names none of the {} here", got.stranger, facts.gpus.size())),
         "unset CUDA_VISIBLE_DEVICES");
  else if (!got.stranger.empty())
    warn(facts, "unknown-device",
         fmt::format("CUDA_VISIBLE_DEVICES='{}': '{}' matches no GPU on this machine and hides the GPUs "
                     "listed after it",
                     value, got.stranger),
         fmt::format("see nvidia-smi -L; {} here", counted(facts.gpus.size(), "GPU")));
}

}  // namespace kshim::doctor
