// SPDX-License-Identifier: Apache-2.0
// GPUs, their driver, and what stands between them and a program: device nodes, containers, WSL.
#include <unistd.h>

#include "analyzer/data/gpu_names.h"
#include "analyzer/data/knowledge.h"
#include "analyzer/input/machine/facts.h"

namespace kshim::input {
using core::trim;

namespace {

constexpr std::size_t kPciList = std::size_t{8} << 20;  // pci.ids has 1.5 MB
constexpr std::string_view kVendor = "0x10de";          // NVIDIA, in PCI's list of vendors

/// "Model: \t\t NVIDIA A100" in /proc/driver/nvidia/gpus/*/information.
std::string field(std::string_view text, std::string_view name) {
  for (const std::string& line : core::split(text, "\n")) {
    if (line.substr(0, name.size()) == name && line.size() > name.size() && line[name.size()] == ':')
      return std::string(trim(std::string_view(line).substr(name.size() + 1)));
  }
  return {};
}

/// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.82.07  Wed ...": the first word like a version.
std::string version_of_module(const Machine& machine) {
  std::string text(trim(machine.read("/sys/module/nvidia/version")));
  if (!text.empty()) return text;
  for (const std::string& word :
       core::split(field(machine.read("/proc/driver/nvidia/version"), "NVRM version"), " \t")) {
    const bool number = word.find_first_not_of("0123456789.") == std::string::npos;
    if (number && core::contains(word, '.')) return word;
  }
  return {};
}

std::vector<Gpu> gpus_of_proc(const Machine& machine) {
  std::vector<Gpu> out;
  const std::string folder = "/proc/driver/nvidia/gpus";
  for (const std::string& name : machine.names(folder)) {
    const std::string text = machine.read(join_path(join_path(folder, name), "information"));
    if (text.empty()) continue;
    Gpu gpu;
    gpu.name = field(text, "Model");
    gpu.uuid = field(text, "GPU UUID");
    gpu.pci = name;
    out.push_back(std::move(gpu));
  }
  return out;
}

/// "\t1b82  GP104 [GeForce GTX 1070 Ti]" below "10de  NVIDIA Corporation" in the list of PCI's names, where
/// one is installed.
std::string name_of_pci(std::string_view list, std::string_view device) {
  const std::size_t vendor = list.find("\n10de  ");
  if (vendor == std::string_view::npos || device.size() != 4) return {};
  std::string_view rest = list.substr(vendor + 1);
  rest.remove_prefix(std::min(rest.find('\n') + 1, rest.size()));
  while (rest.starts_with('\t') || rest.starts_with('#')) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    if (line.size() > 7 && line.substr(1, 4) == device && line[5] == ' ')
      return std::string(trim(line.substr(5)));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
  return {};
}

// Without a driver that answers: what the bus has.
std::vector<Gpu> gpus_of_bus(const Machine& machine, const MachineEnvironment& place) {
  std::vector<Gpu> out;
  std::string list;
  for (const char* path : {"/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids"}) {
    if (!place.pci.empty() && list.empty()) list = machine.read(path, kPciList);
  }
  for (const std::string& address : place.pci) {
    Gpu gpu;
    gpu.pci = address;
    const std::string device(trim(machine.read(join_path("/sys/bus/pci/devices/" + address, "device"))));
    if (device.starts_with("0x")) gpu.name = name_of_pci(list, std::string_view(device).substr(2));
    out.push_back(std::move(gpu));
  }
  return out;
}

// One GPU's instances lie in /proc/driver/nvidia/capabilities/gpuN/mig/giN; the folder mig is always there.
bool has_instances(const Machine& machine) {
  const std::string folder = "/proc/driver/nvidia/capabilities";
  for (const std::string& gpu : machine.names(folder)) {
    const std::vector<std::string> names = machine.names(join_path(join_path(folder, gpu), "mig"));
    if (std::ranges::any_of(names, [](const std::string& name) { return name.starts_with("gi"); }))
      return true;
  }
  return false;
}

}  // namespace

MachineEnvironment look_at_place(const Machine& machine) {
  MachineEnvironment place;
  const std::string init = machine.read("/proc/1/cgroup");
  place.container = machine.exists("/.dockerenv") || machine.exists("/run/.containerenv") ||
                    core::contains(init, "docker") || core::contains(init, "kubepods") ||
                    machine.has_env("NVIDIA_VISIBLE_DEVICES");
  place.wsl =
      machine.exists("/dev/dxg") || machine.read("/proc/version").find("microsoft") != std::string::npos;
  place.module_loaded = machine.exists("/proc/driver/nvidia/version");
  for (const std::string& name : machine.names("/dev")) {
    if (!name.starts_with("nvidia") || name.starts_with("nvidia-caps")) continue;
    const std::string path = "/dev/" + name;
    place.device_nodes.push_back(path);
    if (machine.live() && access(path.c_str(), R_OK | W_OK) != 0) place.denied.push_back(path);
  }
  const std::string bus = "/sys/bus/pci/devices";
  for (const std::string& name : machine.names(bus)) {
    const std::string folder = join_path(bus, name);
    // Class 0x03: display controller. A GPU's sound and USB functions are others.
    if (trim(machine.read(join_path(folder, "vendor"))) == kVendor &&
        trim(machine.read(join_path(folder, "class"))).substr(0, 4) == "0x03")
      place.pci.push_back(name);
  }
  return place;
}

void find_gpus(const Machine& machine, const Loader& loader, MachineFacts& facts) {
  NvmlAnswers answers;
  if (const auto library = loader.find("libnvidia-ml.so.1"); machine.live() && library)
    answers = ask_nvml(library->path);
  facts.driver.kernel_module = version_of_module(machine);
  if (answers.answered) {
    facts.gpus = std::move(answers.gpus);
    facts.driver.cuda = answers.cuda;
    facts.driver.asked = "NVML";
    if (facts.driver.kernel_module.empty()) facts.driver.kernel_module = answers.driver;
  } else {
    facts.gpus = gpus_of_proc(machine);
    if (!answers.error.empty())
      facts.checks.push_back(
          {core::Severity::error, "nvml", "libnvidia-ml.so.1 " + answers.error,
           "restart the machine, or reload the kernel module, after a driver was updated"});
  }
  if (facts.gpus.empty()) facts.gpus = gpus_of_bus(machine, facts.place);
  for (Gpu& gpu : facts.gpus) {
    const auto named = gpu.cc ? std::vector<data::GpuName>() : data::gpus_named_in(gpu.name);
    if (named.empty() || std::ranges::any_of(named, [&](const auto& each) { return each.cc != named[0].cc; }))
      continue;
    gpu.cc = named.front().cc;
    gpu.cc_by_name = true;
  }
  if (has_instances(machine))
    for (Gpu& gpu : facts.gpus) gpu.mig = true;
  if (!facts.driver.cuda.known() && !facts.driver.kernel_module.empty()) {
    if (const auto* row = data::toolkit_of_branch(data::branch_of(facts.driver.kernel_module))) {
      facts.driver.cuda = row->version;
      facts.driver.asked = "the table of toolkits";
    }
  }
  if (const auto* row = data::toolkit_at_most(facts.driver.cuda); facts.driver.cuda.known() && row != nullptr)
    facts.driver.isa = row->isa;
}

}  // namespace kshim::input
