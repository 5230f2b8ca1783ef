// SPDX-License-Identifier: Apache-2.0
// What holds for many files of one scan, told once.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "analyzer/verbs/scan.h"

namespace kshim::scan {

/// Findings about loose images (flashinfer-cubin has 16,000 cubins): those with the same cause, target and
/// architectures become one, which names the other files. A few stay as they are.
class LooseFindings {
 public:
  void add(analysis::Finding finding);
  void add(LooseFindings other);
  std::vector<analysis::Finding> take() &&;

 private:
  struct Group {
    std::vector<analysis::Finding> first;
    std::vector<std::string> others;
  };
  Group& group_of(const analysis::Finding& finding);
  std::map<std::string, Group> groups_;
};

/// A file with `a` or `f` code alone, in a package whose other files run on the target, is one that the
/// package has for other GPUs: no problem.
void excuse_files_for_other_gpus(Scan& scan);

}  // namespace kshim::scan
