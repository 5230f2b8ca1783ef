// SPDX-License-Identifier: Apache-2.0
// One file, or one member of an archive, from its bytes to what a scan says of it.
#pragma once

#include "analyzer/core/finding.h"
#include "analyzer/diagnose/coverage.h"
#include "analyzer/verbs/scan.h"
#include "kshim/image/arch.h"

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

// What a scan says about one object and one target.

struct ObjectFacts {
  ScannedObject& object;  ///< TargetVerdict::picks is set
  const analysis::DeviceCode& code;
  const analysis::FileCoverage& coverage;
  const Owner& owner;
  const analysis::KernelTable* kernels = nullptr;  ///< with --kernels
  bool shared_library = false;
};

/// "sm_90", whatever suffix was asked for.
std::string target_name(image::Arch target);

/// "{file}: 1 of 2 modules has no code for {gpu}": a pattern (Finding::headline).
std::string gap_headline(std::uint64_t part, std::uint64_t all, std::string_view word, bool at_most = false);

/// One finding a target at most, and one for damage.
std::vector<analysis::Finding> findings_of(ObjectFacts facts, image::Version driver);

// Targets that the driver named with --driver does not know, whatever the files hold.

/// One error a compute capability that came after `driver`; none for an unknown driver.
std::vector<analysis::Finding> old_driver_findings(const std::vector<image::Arch>& targets,
                                                   image::Version driver);

}  // namespace kshim::scan
