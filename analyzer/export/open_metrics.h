// SPDX-License-Identifier: Apache-2.0
// How many processes have a finding, for Prometheus: what `kshim export --to openmetrics` writes.
#pragma once

#include "analyzer/core/prelude.h"

namespace kshim::exports {

/// Gauges without time stamps in OpenMetrics, valid as Prometheus' text as well. Their labels are cause,
/// package and compute capability: few values. `notes`: reports that could not be read.
std::string open_metrics(const std::vector<std::filesystem::path>& paths, std::vector<std::string>& notes);

}  // namespace kshim::exports
