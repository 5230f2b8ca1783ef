// SPDX-License-Identifier: Apache-2.0
#include "failure/launch_syntax.h"

#include "track/fatbin_registry.h"

namespace kshim::shim {
namespace {

// The host stub of the last failed __cudaGetKernel of this thread; its launch comes next.
constinit thread_local std::uintptr_t t_failed_host = 0;

}  // namespace

bool complete_launch(CallArgs& facts) noexcept {
  if (facts.hook == Hook::__cudaGetKernel) {
    t_failed_host = facts.host;
    return true;
  }
  if (facts.hook != Hook::__cudaLaunchKernel && facts.hook != Hook::__cudaLaunchKernel_ptsz) return true;
  if (!find_registered(facts.handle).kernel.empty()) facts.host = facts.handle;
  const bool passes_on = t_failed_host != 0 && t_failed_host == facts.host;
  t_failed_host = 0;
  return !passes_on;
}

}  // namespace kshim::shim
