// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>

#include "kshim/report/writer.h"
#include "report/environment.h"

namespace kshim::shim {

/// The batch job that this process belongs to: scheduler, id, account, queue, as far as its variables tell.
struct JobRows {
  report::EnvRow rows[4];
  std::size_t count = 0;
  explicit JobRows(const EnvironmentCopy& environment) noexcept;
};

}  // namespace kshim::shim
