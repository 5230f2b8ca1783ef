// SPDX-License-Identifier: Apache-2.0
// Findings of many files and of several GPUs: what is one to a reader becomes one.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "analyzer/verbs/scan.h"

namespace kshim::scan {

/// Findings about loose images (flashinfer-cubin has 16,000 cubins): those of one package with the same cause
/// and target become one, which names the other files. A few stay as they are.
class LooseFindings {
 public:
  void add(analysis::Finding finding);
  void add(LooseFindings other);
  std::vector<analysis::Finding> take() &&;

 private:
  struct Group {
    std::vector<analysis::Finding> first;  ///< by the names of their files
    std::vector<std::string> others;
    std::map<std::pair<std::string, std::string>, analysis::ImageVerdict> images;  ///< of the others
  };
  Group& group_of(const analysis::Finding& finding);
  std::map<std::string, Group> groups_;
};

/// A file with `a` or `f` code alone, in a package whose other files run on the target, is one that the
/// package has for other GPUs: no problem.
void excuse_files_for_other_gpus(Scan& scan);

/// One finding for each file whose CUDA runtime needs a newer driver than Scan::driver, of many files of a
/// package one. What such a driver does not read is no finding for a GPU that it does not know.
void add_old_driver_findings(Scan& scan);
/// Nothing runs where the driver knows the GPU not, or the runtime refuses the driver: verdicts say so.
void refuse_by_driver(Scan& scan);

/// Places of findings that say the same of one file for several GPUs.
using Groups = std::vector<std::vector<std::size_t>>;
Groups of_one_file(const std::vector<analysis::Finding>& findings);
/// So that one build is advised for all of a group.
void tell_of_each_other(const Groups& groups, std::vector<analysis::Finding>& findings);
/// Each group becomes its first, whose devices are those of all; so are its fixes and its evidence.
void merge(const Groups& groups, Scan& scan);

}  // namespace kshim::scan
