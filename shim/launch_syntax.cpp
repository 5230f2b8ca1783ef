// SPDX-License-Identifier: Apache-2.0
#include "launch_syntax.h"

namespace kshim::shim {
namespace {

struct Site {
  std::atomic<const void*> caller;
  std::atomic<std::uintptr_t> host;
};
constexpr std::size_t kSites = 1024;
Site g_sites[kSites];
// The host stub whose __cudaGetKernel failed last on this thread; its launch comes next.
constinit thread_local std::uintptr_t t_failed_host = 0;

Site* site_of(const void* caller) noexcept {
  const auto home = static_cast<std::size_t>((address_of(caller) * 0x9e3779b97f4a7c15ULL) >> (64U - 10U));
  for (std::size_t i = 0; i < kSites; ++i) {
    Site& site = g_sites[(home + i) % kSites];
    const void* holder = site.caller.load(std::memory_order_acquire);
    if (holder == nullptr && site.caller.compare_exchange_strong(holder, caller, std::memory_order_acq_rel))
      return &site;
    if (holder == caller) return &site;
  }
  return nullptr;
}

}  // namespace

bool complete_launch(CallFacts& facts) noexcept {
  if (facts.hook == Hook::__cudaGetKernel) {
    t_failed_host = facts.host;
    return true;
  }
  if (facts.handle != 0 || (facts.hook != Hook::__cudaLaunchKernel && facts.hook != Hook::__cudaLaunchKernel_ptsz))
    return true;
  Site* site = site_of(facts.caller);
  if (site == nullptr) return true;
  const bool passes_on = t_failed_host != 0;
  if (passes_on) site->host.store(t_failed_host, std::memory_order_release);
  t_failed_host = 0;
  facts.host = site->host.load(std::memory_order_acquire);
  return !passes_on;
}

}  // namespace kshim::shim
