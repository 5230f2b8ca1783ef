// SPDX-License-Identifier: Apache-2.0
// What a file lacks for a GPU. Found by reading all of its device code, which is done once for all reports.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "analyzer/core/facts.h"
#include "analyzer/device_code/object_file.h"
#include "analyzer/input/report/report.h"

namespace kshim::analysis {

/// How many modules of a file lack an image, and how many have one.
struct ModuleShare {
  std::size_t lacking = 0;
  std::size_t served = 0;
};

struct FileGap {
  std::vector<ImageFact> images;     ///< of the modules that lack code, each kind once
  std::vector<std::string> kernels;  ///< of those, mangled
  image::Version toolkit;            ///< the newest that built one of them
  bool complete = true;              ///< every payload of them could be read
  ModuleShare modules;
};

class FileGaps {
 public:
  std::shared_ptr<const FileGap> find(const ObjectRecord& object, const ObjectFile& file,
                                      image::ComputeCapability cc, image::Version driver);

 private:
  std::map<std::tuple<const ObjectFile*, image::ComputeCapability, image::Version>,
           std::shared_ptr<const FileGap>>
      known_;
  std::size_t bytes_ = 0;
};

}  // namespace kshim::analysis
