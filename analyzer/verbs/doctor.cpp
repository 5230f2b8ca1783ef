// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/doctor.h"

#include "analyzer/diagnose/machine_checks.h"
#include "analyzer/verbs/scan.h"

namespace kshim::verbs {
namespace {

/// The packages of the active environment, or of the one that was named, on the GPUs that were found.
Scan scan_packages(const Machine& machine, const MachineFacts& facts) {
  if (facts.pythons.empty()) return {};
  std::vector<std::filesystem::path> folders;
  for (const std::string& folder : facts.pythons.front().folders) folders.push_back(machine.at(folder));
  ScanRequest request;
  for (const Gpu& gpu : facts.gpus) {
    const image::Arch arch{gpu.cc.value_or(image::ComputeCapability{}), image::Suffix::none};
    if (gpu.cc && !contains(request.targets, arch)) request.targets.push_back(arch);
  }
  request.driver = facts.driver.cuda;
  return scan(folders, request);
}

}  // namespace

Examination examine(const Machine& machine, const std::string& program) {
  Examination out;
  MachineFacts& facts = out.machine;
  const Loader loader(machine);
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
    facts.program = look_at_program(
        machine, loader,
        environment == program && !environment.empty() ? join_path(environment, "bin/python") : program);
  check_driver(loader, facts);
  check_place(machine, facts);
  check_toolkits(machine, facts);
  check_libraries(machine, loader, facts);
  check_program(facts);
  std::ranges::stable_sort(facts.checks, std::greater(), &Check::severity);
  return out;
}

}  // namespace kshim::verbs
