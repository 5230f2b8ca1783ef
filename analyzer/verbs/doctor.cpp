// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/doctor.h"

#include "analyzer/diagnose/machine_checks.h"
#include "analyzer/verbs/scan.h"

namespace kshim::verbs {
using input::Machine;
using input::MachineFacts;

namespace {

std::vector<image::Arch> gpus_known(const MachineFacts& facts) {
  std::vector<image::Arch> out;
  for (const input::Gpu& gpu : facts.gpus) {
    const image::Arch arch{gpu.cc.value_or(image::ComputeCapability{}), image::Suffix::none};
    if (gpu.cc && !core::contains(out, arch)) out.push_back(arch);
  }
  return out;
}

/// The Python environment whose modules a process has mapped; else that of its program.
std::string environment_in(const Machine& machine, const input::RunningProcess& process) {
  for (const std::string& path : process.mapped)
    if (const std::size_t at = path.find("/lib/python3");
        at != std::string::npos && at != 0 && core::contains(path, "/site-packages/"))
      return path.substr(0, at);
  return environment_of(machine, process.program);
}

/// The packages of the active environment, or of the one that was named, on the GPUs that were found.
Scan scan_packages(const Machine& machine, const MachineFacts& facts) {
  if (facts.pythons.empty()) return {};
  std::vector<std::filesystem::path> folders;
  for (const std::string& folder : facts.pythons.front().folders) folders.push_back(machine.at(folder));
  ScanRequest request;
  request.targets = gpus_known(facts);
  request.driver = facts.driver.cuda;
  return scan(folders, request);
}

/// The newest CUDA that the driver of a process serves: its library's where that says so. Forward
/// compatibility is a newer one than the kernel module's.
image::Version driver_of(const MachineFacts& facts) {
  for (const input::Library& library : facts.libraries)
    if (library.name == "libcuda.so.1")
      if (const auto* row = data::toolkit_of_branch(data::branch_of(library.version))) return row->version;
  return facts.driver.cuda;
}

}  // namespace

Examination examine(const Machine& machine, const std::string& program) {
  Examination out;
  MachineFacts& facts = out.machine;
  const input::Loader loader(machine);
  facts.system = look_at_system(machine, loader);
  facts.place = look_at_place(machine);
  find_gpus(machine, loader, facts);
  facts.toolkits = find_toolkits(machine);
  const std::string environment = program.empty() ? std::string() : environment_of(machine, program);
  facts.pythons = find_pythons(machine, environment);
  out.packages = scan_packages(machine, facts);
  facts.libraries = find_libraries(machine, loader);
  facts.compilers = find_compilers(machine, facts.pythons);
  facts.preloads = find_preloads(machine);
  if (!program.empty())
    facts.program = look_at_program(machine, loader,
                                    environment == program && !environment.empty()
                                        ? input::join_path(environment, "bin/python")
                                        : program);
  diagnose::check_driver(loader, facts);
  diagnose::check_place(machine, facts);
  diagnose::check_toolkits(machine, facts);
  diagnose::check_libraries(machine, loader, facts);
  diagnose::check_program(facts);
  std::ranges::stable_sort(facts.checks, std::greater(), &input::Check::severity);
  return out;
}

Examination examine(const input::LiveProcess& process, ScanRequest request) {
  Examination out;
  MachineFacts& facts = out.machine;
  const Machine& machine = process.machine();
  const input::Loader loader(machine);
  facts.process = process.facts();
  facts.system = look_at_system(machine, loader);
  facts.place = look_at_place(machine);
  // A container has no driver of its own, and maybe not all of the GPUs.
  const Machine host = input::this_machine();
  find_gpus(host, input::Loader(host), facts);
  facts.toolkits = find_toolkits(machine);
  facts.pythons = find_pythons(machine, environment_in(machine, *facts.process));
  facts.libraries = mapped_libraries(machine, *facts.process);
  facts.preloads = find_preloads(machine);
  if (request.targets.empty()) request.targets = gpus_known(facts);
  if (!request.driver.known()) request.driver = driver_of(facts);
  request.root = process.root();
  out.packages = scan(process.code_files(), request);
  for (const ScannedObject& object : out.packages.objects) facts.process->with_code.push_back(object.path);
  diagnose::check_driver(loader, facts);
  diagnose::check_place(machine, facts);
  diagnose::check_process(machine, loader, facts);
  std::ranges::stable_sort(facts.checks, std::greater(), &input::Check::severity);
  out.packages.paths = {fmt::format("process {}", facts.process->pid), facts.process->program};
  out.packages.process = facts.process;
  out.packages.checks = facts.checks;
  return out;
}

}  // namespace kshim::verbs
