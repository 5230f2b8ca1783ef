// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/doctor_coverage.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "analyzer/verbs/scan.h"

namespace kshim::doctor {
namespace {

struct Sum {
  PackageCoverage out;
  std::set<image::Arch> sass;
  std::set<image::Arch> ptx;
};

void add_verdict(const scan::TargetVerdict& verdict, PackageCoverage& out) {
  const auto at = std::find_if(out.gpus.begin(), out.gpus.end(),
                               [&](const GpuCoverage& each) { return each.cc == verdict.target.cc; });
  GpuCoverage& gpu = at == out.gpus.end() ? out.gpus.emplace_back(GpuCoverage{.cc = verdict.target.cc}) : *at;
  if (verdict.sass + verdict.jit + verdict.lacking == 0) return;
  ++gpu.files;
  if (!verdict.nothing_fits()) ++gpu.run;
  if (verdict.jit != 0) ++gpu.jit;
}

}  // namespace

void find_coverage(const Machine& machine, Facts& facts) {
  std::vector<std::filesystem::path> folders;
  for (const Python& python : facts.pythons)
    for (const std::string& folder : python.folders) folders.push_back(machine.at(folder));
  if (folders.empty()) return;
  scan::Options options;
  for (const Gpu& gpu : facts.gpus) {
    const bool known = !gpu.cc || std::any_of(options.targets.begin(), options.targets.end(),
                                              [&](const image::Arch& each) { return each.cc == *gpu.cc; });
    if (!known) options.targets.push_back({*gpu.cc, image::Suffix::none});
  }
  options.driver = facts.driver.cuda;
  const scan::Scan found = scan::scan(folders, options);
  std::map<std::string, Sum> packages;
  for (const scan::ScannedObject& object : found.objects) {
    Sum& sum = packages[object.package.label()];
    ++sum.out.files;
    for (const analysis::ImageCount& row : object.images) {
      if (row.candidate.kind == image::ImageKind::cubin) sum.sass.insert(row.candidate.arch);
      if (row.candidate.kind == image::ImageKind::ptx) sum.ptx.insert(row.candidate.arch);
    }
    for (const scan::TargetVerdict& verdict : object.targets) add_verdict(verdict, sum.out);
  }
  for (auto& [name, sum] : packages) {
    sum.out.package = name;
    for (const image::Arch arch : sum.sass)
      sum.out.archs.emplace_back(image::to_name(image::ImageKind::cubin, arch).view());
    for (const image::Arch arch : sum.ptx)
      sum.out.archs.emplace_back(image::to_name(image::ImageKind::ptx, arch).view());
    facts.coverage.push_back(std::move(sum.out));
  }
}

}  // namespace kshim::doctor
