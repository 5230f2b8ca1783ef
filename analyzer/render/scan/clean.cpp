// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/scan/clean.h"

#include "analyzer/core/text.h"
#include "analyzer/render/each_string.h"

namespace kshim::scan {

Scan cleaned(Scan scan, bool unicode) {
  const auto clean = [unicode](std::string& text) {
    text = unicode ? analysis::harmless(text) : analysis::ascii(text);
  };
  for (ScannedObject& object : scan.objects) {
    for (std::string* text : {&object.path, &object.member, &object.build_id, &object.format,
                              &object.package.name, &object.package.version})
      clean(*text);
    if (object.expected) clean(object.expected->source), clean(object.expected->reason);
    for (ModuleSize& module : object.largest) clean(module.kernel);
    if (!object.kernels) continue;
    for (ScannedKernel& kernel : *object.kernels) {
      clean(kernel.name);
      clean(kernel.demangled);
    }
  }
  analysis::each_string(scan.findings, clean);
  analysis::each_string(scan.fleet, clean);
  for (ScannedImage& image : scan.images)
    for (std::string* text : {&image.path, &image.name, &image.platform}) clean(*text);
  for (std::string& note : scan.notes) clean(note);
  for (BudgetUse& use : scan.budget) clean(use.name);
  return scan;
}

}  // namespace kshim::scan
