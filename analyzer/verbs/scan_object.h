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
  /// What could not be judged: damage of the file, images of unknown kinds. Each is a sentence with the name.
  std::vector<std::string> notes;
  bool loose = false;            ///< an image, or several, without a host file around them
  bool has_device_code = false;  ///< else nothing says that the damaged file holds any: there are only notes
};

/// nullopt for bytes without device code, and without damage to any. `object` brings path, member and
/// package.
std::optional<ObjectResult> scan_object(ScannedObject object, Bytes bytes, const Options& options);

}  // namespace kshim::scan
