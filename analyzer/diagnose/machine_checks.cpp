// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/machine_checks.h"

#include <stdexcept>

#include "analyzer/data/knowledge.h"
#include "analyzer/input/report/cuda_library.h"
#include "kshim/base/visible_devices.h"

namespace kshim::diagnose {
using core::contains;
using core::enumerate;
using input::Gpu;
using input::join_path;
using input::Library;
using input::Loader;
using input::Machine;
using input::MachineFacts;
using input::Toolkit;

namespace {

/// `id`: of a row of machine_checks; what stands behind a slash tells rows of one check apart.
void add_check(std::string_view id, MachineFacts& facts, const core::TemplateWords& words = {}) {
  const auto* row = data::first_row(data::machine_checks(),
                                    [&](const data::MachineCheckRow& each) { return each.id == id; });
  if (row == nullptr)
    throw std::runtime_error(fmt::format("the tables in use have no machine check `{}`", id));
  facts.checks.push_back({row->severity, std::string(id.substr(0, id.find('/'))),
                          core::expand(row->text, words), core::expand(row->advice, words)});
}

/// libcuda.so.1 of the toolkit's folder `compat` (cuda-compat): a newer user part for an older kernel module.
bool is_compat(const Library& library) { return contains(library.file.real, "/compat/"); }
bool is_stub(std::string_view path) { return contains(path, "/stubs/"); }

void check_stub(const Loader& loader, const Library* driver, MachineFacts& facts) {
  if (driver != nullptr && (is_stub(driver->file.real) || is_stub(driver->file.path))) {
    add_check("stub-driver", facts, {{"file", driver->file.path}, {"how", driver->file.how}});
    return;
  }
  for (const std::string& folder : loader.library_path())
    if (is_stub(folder + "/")) add_check("stub-folder", facts, {{"folder", folder}});
}

void check_versions(const Library& driver, MachineFacts& facts) {
  const std::string& kernel = facts.driver.kernel_module;
  if (is_compat(driver)) {
    add_check("cuda-compat", facts, {{"file", driver.file.path}});
    return;
  }
  if (kernel.empty() || driver.version.empty() || driver.version == kernel) return;
  add_check("driver-mismatch", facts,
            {{"file", driver.file.path}, {"version", driver.version}, {"module", kernel}});
}

/// "libcudart" and "13" of libcudart.so.13.
std::pair<std::string, std::string> parts_of(const std::string& name) {
  const std::size_t mark = name.find(".so.");
  if (mark == std::string::npos) return {name, {}};
  const std::string version = name.substr(mark + 4);
  return {name.substr(0, mark), version.substr(0, version.find('.'))};
}

/// The wheels' and conda's folders: their own programs and modules look there first, by RPATH, unless
/// LD_LIBRARY_PATH goes before it.
std::vector<std::string> environment_folders(const Machine& machine, const MachineFacts& facts) {
  std::vector<std::string> out;
  for (const input::Python& python : facts.pythons)
    out.insert(out.end(), python.library_folders.begin(), python.library_folders.end());
  if (const std::string_view conda = machine.env("CONDA_PREFIX"); !conda.empty())
    out.push_back(join_path(conda, "lib"));
  return out;
}

/// Files in LD_LIBRARY_PATH that stand before a different copy of an environment's.
void check_shadows(const Machine& machine, const Loader& loader, MachineFacts& facts) {
  for (const std::string& folder : environment_folders(machine, facts)) {
    std::vector<std::string> shadowed;
    std::string by;
    for (const std::string& name : machine.names(folder)) {
      if (!input::is_cuda_library(name) || parts_of(name).second.empty()) continue;
      const auto found = loader.find(name);
      const std::string own = machine.real(join_path(folder, name));
      if (!found || found->how != "LD_LIBRARY_PATH" || found->real == own) continue;
      shadowed.push_back(name);
      by = found->path.substr(0, found->path.rfind('/'));
    }
    if (shadowed.empty()) continue;
    const std::size_t count = shadowed.size();
    if (count > 3) shadowed.resize(3);
    add_check("shadowed-libraries", facts,
              {{"files", enumerate(shadowed)},
               {"by", by},
               {"which", count == 1 ? "the one" : "those"},
               {"folder", folder}});
  }
}

void check_copies(const Loader& loader, MachineFacts& facts) {
  for (const Library& library : facts.libraries) {
    for (const input::FoundFile& other : loader.all(library.name)) {
      const std::string version = input::version_in_name(other.real);
      if (other.real == library.file.real || !input::releases_differ(library.version, version)) continue;
      add_check("two-copies", facts,
                {{"name", library.name},
                 {"file", library.file.path},
                 {"version", library.version},
                 {"how", library.file.how},
                 {"other", other.path},
                 {"other_version", version},
                 {"other_how", other.how}});
    }
  }
}

/// Wheels built for several majors of CUDA, in one environment: nvidia-cublas-cu12 beside -cu11.
void check_wheels(MachineFacts& facts) {
  for (const input::Python& python : facts.pythons) {
    std::map<std::string, std::set<std::string>> majors;
    for (const input::PythonWheel& wheel : python.wheels) {
      const std::size_t mark = wheel.name.rfind("-cu");
      if (!wheel.name.starts_with("nvidia-") || mark == std::string::npos) continue;
      const std::string major = wheel.name.substr(mark + 3);
      if (major.find_first_not_of("0123456789") == std::string::npos && !major.empty())
        majors[wheel.name.substr(0, mark)].insert(major);
    }
    for (const auto& [name, found] : majors) {
      if (found.size() < 2) continue;
      add_check("mixed-wheels", facts,
                {{"python", python.interpreter},
                 {"name", name},
                 {"majors", enumerate({found.begin(), found.end()})},
                 {"first", *found.begin()}});
    }
  }
}

/// Several majors of a CUDA library in one program.
void check_majors(const std::string& program, const std::vector<Library>& libraries, MachineFacts& facts) {
  std::map<std::string, std::map<std::string, std::string>> majors;
  for (const Library& library : libraries) {
    const auto [name, major] = parts_of(library.name);
    if (!major.empty()) majors[name].emplace(major, library.file.path);
  }
  for (const auto& [name, found] : majors) {
    if (found.size() < 2) continue;
    std::vector<std::string> files;
    for (const auto& [major, path] : found) files.push_back(path);
    add_check(facts.process ? "mixed-cuda-libraries/process" : "mixed-cuda-libraries", facts,
              {{"program", program}, {"name", name}, {"files", enumerate(files)}});
  }
}

/// The first file whose name begins like that; nullptr where none does.
const std::string* first_mapped(const std::vector<std::string>& files, std::string_view name) {
  return data::first_row(files,
                         [&](const std::string& file) { return core::basename_of(file).starts_with(name); });
}

/// A library whose name begins like that, in the folder of `file` or one folder deeper; empty where there is
/// none.
std::string near(const Machine& machine, const std::string& file, std::string_view name) {
  const std::string folder = file.substr(0, file.rfind('/'));
  std::vector<std::string> folders = {folder};
  for (const std::string& below : machine.names(folder)) folders.push_back(join_path(folder, below));
  for (const std::string& each : folders) {
    if (!machine.is_folder(each)) continue;
    for (const std::string& found : machine.names(each))
      if (found.starts_with(name) && contains(found, ".so")) return join_path(each, found);
  }
  return {};
}

void check_preloads(MachineFacts& facts) {
  for (const input::Preload& preload : facts.preloads) {
    if (!preload.there) add_check("preload-missing", facts, {{"file", preload.path}});
    if (preload.has_dlsym)
      add_check("preload-dlsym", facts, {{"file", preload.path}, {"what", preload.note}});
  }
}

}  // namespace

void check_driver(const Loader& loader, MachineFacts& facts) {
  const Library* driver =
      data::first_row(facts.libraries, [](const Library& library) { return library.name == "libcuda.so.1"; });
  check_stub(loader, driver, facts);
  if (driver == nullptr && facts.process) {
    add_check("no-libcuda/process", facts, {{"pid", std::to_string(facts.process->pid)}});
  } else if (driver == nullptr) {
    const bool hardware = !facts.place.pci.empty() || facts.place.module_loaded || !facts.gpus.empty();
    add_check(hardware ? "no-libcuda/gpu" : "no-libcuda/none", facts);
  } else {
    check_versions(*driver, facts);
  }
  if (std::string said = data::newer_cuda_than_known(facts.driver.cuda); !said.empty())
    add_check("newer-driver", facts, {{"newer", said}});
  if (!facts.place.pci.empty() && !facts.place.module_loaded && !facts.place.wsl && !facts.place.container)
    add_check("no-kernel-module", facts, {{"gpus", core::counted(facts.place.pci.size(), "NVIDIA GPU")}});
  if (facts.place.wsl && driver != nullptr && !driver->file.real.starts_with("/usr/lib/wsl/"))
    add_check("wsl-driver", facts, {{"file", driver->file.path}});
  if (facts.place.wsl && driver == nullptr) add_check("wsl-no-driver", facts);
  for (const Gpu& gpu : facts.gpus) {
    const auto* row = gpu.cc ? data::find_gpu(*gpu.cc) : nullptr;
    if (gpu.mig) add_check("mig", facts, {{"gpu", gpu.name}});
    if (row != nullptr && row->last_branch != 0)
      add_check("last-branch", facts, {{"gpu", gpu.name}, {"branch", std::to_string(row->last_branch)}});
  }
}

void check_place(const Machine& machine, MachineFacts& facts) {
  const std::string_view visible = machine.env("NVIDIA_VISIBLE_DEVICES");
  const bool wanted = !visible.empty() && visible != "void" && visible != "none";
  const bool nodes = !facts.place.device_nodes.empty();
  if (wanted && !nodes && !facts.place.wsl)
    add_check("container-without-gpu", facts, {{"value", std::string(visible)}});
  const std::string_view capabilities = machine.env("NVIDIA_DRIVER_CAPABILITIES");
  if (wanted && !capabilities.empty() && !contains(capabilities, "compute") && !contains(capabilities, "all"))
    add_check("container-capabilities", facts, {{"value", std::string(capabilities)}});
  if (!facts.place.denied.empty())
    add_check("device-rights", facts, {{"files", enumerate(facts.place.denied)}});
  const auto has = [&](std::string_view name) { return contains(facts.place.device_nodes, name); };
  if (has("/dev/nvidia0") && !has("/dev/nvidia-uvm")) add_check("no-uvm", facts);
  if (machine.has_env("CUDA_VISIBLE_DEVICES")) check_visible_devices(machine, facts);
  for (const data::SwitchRow& row : data::switches()) {
    const std::string_view value = machine.env(row.variable);
    if (!value.empty() && value != "0")
      add_check("jit-switch", facts,
                {{"variable", std::string(row.variable)},
                 {"value", std::string(value)},
                 {"effect", std::string(row.effect)}});
  }
}

void check_toolkits(const Machine& machine, MachineFacts& facts) {
  const auto by = [&](std::string_view variable) -> const Toolkit* {
    for (const Toolkit& toolkit : facts.toolkits)
      for (const std::string& known : toolkit.known_by)
        if (known == variable) return &toolkit;
    return nullptr;
  };
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const std::string_view value = machine.env(variable); !value.empty() && by(variable) == nullptr)
      add_check("toolkit-gone", facts, {{"variable", variable}, {"folder", std::string(value)}});
  const Toolkit* home = by("CUDA_HOME");
  const Toolkit* path = by("PATH");
  if (home != nullptr && path != nullptr && home != path)
    add_check("two-toolkits", facts,
              {{"home", home->folder},
               {"home_cuda", name(home->version)},
               {"path", path->folder},
               {"path_cuda", name(path->version)}});
  for (const Toolkit& toolkit : facts.toolkits) {
    if (const std::string said = data::newer_cuda_than_known(toolkit.version); !said.empty())
      add_check("newer-toolkit", facts, {{"folder", toolkit.folder}, {"newer", said}});
    if (facts.driver.cuda.known() && toolkit.version.known() && toolkit.version > facts.driver.cuda)
      add_check("toolkit-newer-than-driver", facts,
                {{"folder", toolkit.folder},
                 {"cuda", name(toolkit.version)},
                 {"driver_cuda", name(facts.driver.cuda)}});
    const auto* row = data::toolkit_at_most(toolkit.version);
    for (const Gpu& gpu : facts.gpus) {
      if (!toolkit.compiler || row == nullptr || !gpu.cc || row->version != toolkit.version) continue;
      const image::Arch arch{*gpu.cc, image::Suffix::none};
      if (builds_for(*row, arch)) continue;
      const auto* last = data::last_toolkit_for(arch);
      const bool older = last != nullptr && last->version < toolkit.version;
      add_check("toolkit-without-arch", facts,
                {{"folder", toolkit.folder},
                 {"cuda", name(toolkit.version)},
                 {"gpu", gpu.name},
                 {"sm", sm_name(*gpu.cc)},
                 {"other", older ? "the last that does is " + name(last->version) : "a newer one does"}});
    }
  }
}

void check_libraries(const Machine& machine, const Loader& loader, MachineFacts& facts) {
  check_shadows(machine, loader, facts);
  check_copies(loader, facts);
  check_wheels(facts);
  check_preloads(facts);
}

void check_program(MachineFacts& facts) {
  if (!facts.program) return;
  const input::Program program = *facts.program;
  if (!program.found) {
    add_check("program-missing", facts, {{"program", program.path}});
    return;
  }
  if (!program.elf) {
    add_check("program-unknown", facts, {{"program", program.path}});
    return;
  }
  if (!program.blind.empty()) add_check("blind", facts, {{"program", program.path}, {"why", program.blind}});
  for (const input::Missing& missing : program.missing)
    add_check("library-not-found", facts, {{"name", missing.text()}});
  check_majors(program.path, program.libraries, facts);
}

void check_process(const Machine& machine, const Loader& loader, MachineFacts& facts) {
  const input::RunningProcess process = *facts.process;
  check_majors(process.program, facts.libraries, facts);
  for (const data::GpuLibraryRow& row : data::gpu_libraries()) {
    const std::string* library = first_mapped(process.mapped, row.library);
    // One that has its kernels inside needs no other.
    if (library == nullptr || contains(process.with_code, *library)) continue;
    if (std::ranges::any_of(
            row.gpu, [&](std::string_view name) { return first_mapped(process.mapped, name) != nullptr; }))
      continue;
    core::TemplateWords words = {{"pid", std::to_string(process.pid)},
                                 {"name", std::string(row.name)},
                                 {"library", std::string(core::basename_of(*library))},
                                 {"gpu", std::string(row.gpu.front())}};
    const std::string file = near(machine, *library, row.gpu.front());
    if (file.empty()) {
      words.emplace_back("install", row.install);
      add_check("gpu-library-not-mapped/absent", facts, words);
      continue;
    }
    words.emplace_back("file", file);
    words.emplace_back("told", row.told);
    std::vector<std::string> missing;
    for (const input::Missing& each : look_at_program(machine, loader, file).missing)
      if (first_mapped(process.mapped, each.name) == nullptr) missing.push_back(each.name);
    words.emplace_back("missing", enumerate(missing));
    add_check(missing.empty() ? "gpu-library-not-mapped/there" : "gpu-library-not-mapped/missing", facts,
              words);
  }
}

void check_visible_devices(const Machine& machine, MachineFacts& facts) {
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
    add_check("hidden-devices", facts,
              {{"value", std::string(value)},
               {"why", got.twice ? ", as far as is known, for it names one twice"
                       : hides   ? ""
                                 : fmt::format(", for '{}' names none of the {} here", got.stranger,
                                               facts.gpus.size())}});
  else if (!got.stranger.empty())
    add_check("unknown-device", facts,
              {{"value", std::string(value)},
               {"stranger", std::string(got.stranger)},
               {"gpus", core::counted(facts.gpus.size(), "GPU")}});
}

}  // namespace kshim::diagnose
