// SPDX-License-Identifier: Apache-2.0
// One file, or one member of an archive, from its bytes to what a scan says of it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "analyzer/verbs/scan.h"

namespace kshim::scan {

struct ObjectResult {
  ScannedObject object;
  std::vector<analysis::Finding> findings;
  /// Not empty: nothing says that the file holds device code, but it is damaged, and this is how. Then there
  /// is nothing else.
  std::string note;
};

/// nullopt for bytes without device code, and without damage to any. `object` brings path, member and
/// package.
std::optional<ObjectResult> scan_object(ScannedObject object, Bytes bytes, const Options& options);

}  // namespace kshim::scan
