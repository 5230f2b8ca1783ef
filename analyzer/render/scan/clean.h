// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "analyzer/verbs/scan.h"

namespace kshim::scan {

/// The scan with every string harmless() or, without `unicode`, ascii(): names in archives and kernels are
/// foreign.
Scan cleaned(Scan scan, bool unicode);

}  // namespace kshim::scan
