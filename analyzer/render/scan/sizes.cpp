// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/scan/sizes.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "analyzer/core/text.h"

namespace kshim::scan {

std::vector<SizeTable> size_tables(const Scan& scan, std::size_t most) {
  SizeTable archs{.what = "architecture"};
  SizeTable modules{.what = "module"};
  SizeTable kernels{.what = "kernel"};
  std::map<std::pair<bool, std::string>, SizeRow> by_arch;
  std::map<std::string, SizeRow> by_kernel;
  for (const ScannedObject& object : scan.objects) {
    for (const analysis::ImageCount& row : object.images) {
      const std::string name(image::to_name(row.candidate.kind, row.candidate.arch).view());
      SizeRow& sum = by_arch[{row.candidate.kind != image::ImageKind::cubin, name}];
      sum.name = name;
      sum.bytes += row.stored;
      sum.clear += row.bytes;
      sum.images += row.count;
    }
    for (const ModuleSize& module : object.largest)
      modules.rows.push_back({fmt::format("{}+{}", analysis::basename_of(object.name()), module.offset),
                              module.stored, module.bytes, module.images, analysis::demangle(module.kernel)});
    if (!object.kernels) continue;
    for (const ScannedKernel& kernel : *object.kernels) {
      SizeRow& sum = by_kernel[kernel.name];
      if (sum.name.empty()) sum.name = kernel.demangled;
      for (const KernelNeeds& image : kernel.images)
        sum.bytes += image.code_bytes, sum.images += image.code_bytes != 0;
    }
  }
  for (auto& [key, row] : by_arch) archs.rows.push_back(std::move(row));
  for (auto& [key, row] : by_kernel) kernels.total += row.bytes, kernels.rows.push_back(std::move(row));
  for (const SizeRow& row : archs.rows) archs.total += row.bytes;
  modules.total = archs.total;
  std::vector<SizeTable> out;
  for (SizeTable* table : {&archs, &modules, &kernels}) {
    std::stable_sort(table->rows.begin(), table->rows.end(),
                     [](const SizeRow& a, const SizeRow& b) { return a.bytes > b.bytes; });
    if (table != &archs && table->rows.size() > most) table->rows.resize(most);
    if (!table->rows.empty()) out.push_back(std::move(*table));
  }
  return out;
}

std::string share_text(std::uint64_t part, std::uint64_t all) {
  return fmt::format("{:.0f} %",
                     all == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(all));
}

}  // namespace kshim::scan
