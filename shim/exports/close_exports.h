// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>

namespace kshim::shim {

using CloseFn = int (*)(void*);
/// The next dlclose after the shim's in link order (lifetime.cpp).
extern std::atomic<CloseFn> g_next_dlclose;

}  // namespace kshim::shim
