// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <atomic>

namespace kshim::shim {

using WaitFn = pid_t (*)(pid_t, int*, int);
/// The next waitpid after the shim's in link order (lifetime.cpp).
extern std::atomic<WaitFn> g_next_waitpid;

}  // namespace kshim::shim
