// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/doctor.h"

#include "analyzer/diagnose/machine_checks.h"
#include "analyzer/verbs/scan.h"

namespace kshim::verbs {
namespace {

struct Sum {
  PackageCoverage out;
  std::set<image::Arch> sass;
  std::set<image::Arch> ptx;
};

void add_verdict(const TargetVerdict& verdict, PackageCoverage& out) {
  const auto at = std::ranges::find(out.gpus, verdict.target.cc, &GpuCoverage::cc);
  GpuCoverage& gpu = at == out.gpus.end() ? out.gpus.emplace_back(GpuCoverage{.cc = verdict.target.cc}) : *at;
  if (verdict.sass + verdict.jit + verdict.lacking == 0) return;
  ++gpu.files;
  if (!verdict.nothing_fits()) ++gpu.run;
  if (verdict.jit != 0) ++gpu.jit;
}

/// What the packages of the Python environments are built for, and how many of their files run on the GPUs
/// that were found: what `kshim scan` says of them, by package.
void find_coverage(const Machine& machine, MachineFacts& facts) {
  std::vector<std::filesystem::path> folders;
  for (const Python& python : facts.pythons)
    for (const std::string& folder : python.folders) folders.push_back(machine.at(folder));
  if (folders.empty()) return;
  ScanRequest options;
  for (const Gpu& gpu : facts.gpus) {
    const image::Arch arch{gpu.cc.value_or(image::ComputeCapability{}), image::Suffix::none};
    if (gpu.cc && !contains(options.targets, arch)) options.targets.push_back(arch);
  }
  options.driver = facts.driver.cuda;
  const Scan found = scan(folders, options);
  std::map<std::string, Sum> packages;
  for (const ScannedObject& object : found.objects) {
    Sum& sum = packages[object.package.label()];
    ++sum.out.files;
    for (const ImageCount& row : object.images) {
      if (row.candidate.kind == image::ImageKind::cubin) sum.sass.insert(row.candidate.arch);
      if (row.candidate.kind == image::ImageKind::ptx) sum.ptx.insert(row.candidate.arch);
    }
    for (const TargetVerdict& verdict : object.targets) add_verdict(verdict, sum.out);
  }
  for (auto& [name, sum] : packages) {
    sum.out.package = name;
    for (const image::Arch arch : sum.sass) sum.out.archs.emplace_back(sm_name(arch));
    for (const image::Arch arch : sum.ptx)
      sum.out.archs.emplace_back(image::to_name(image::ImageKind::ptx, arch).view());
    facts.coverage.push_back(std::move(sum.out));
  }
}

}  // namespace

MachineFacts examine(const Machine& machine, const std::string& program) {
  MachineFacts facts;
  const Loader loader(machine);
  facts.system = look_at_system(machine, loader);
  facts.place = look_at_place(machine);
  find_gpus(machine, loader, facts);
  facts.toolkits = find_toolkits(machine);
  const std::string environment = program.empty() ? std::string() : environment_of(machine, program);
  facts.pythons = find_pythons(machine, environment);
  find_coverage(machine, facts);
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
  return facts;
}

}  // namespace kshim::verbs
