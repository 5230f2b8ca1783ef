// SPDX-License-Identifier: Apache-2.0
// Which Python distribution a file belongs to, for thousands of files of one environment: RECORD files are
// read once.
#pragma once
#include <map>
#include <string>
#include <unordered_map>

namespace kshim::scan {

class Distributions {
 public:
  /// "torch 2.9.1"; empty for a file that no distribution of its site-packages folder lists.
  const std::string& of(const std::string& path);

 private:
  /// By path inside the folder.
  using Records = std::unordered_map<std::string, std::string>;
  const Records& records_of(const std::string& folder);
  std::map<std::string, Records> folders_;
};

/// "torch 2.9.1" of .../torch-2.9.1-cp311-cp311-manylinux_2_28_x86_64.whl; empty for other names.
std::string distribution_of_wheel(std::string_view path);

}  // namespace kshim::scan
