// SPDX-License-Identifier: Apache-2.0
#include "guest/reentry_guard.h"

namespace kshim::shim {

constinit thread_local bool t_inside = false;
constinit thread_local bool t_asking = false;
constinit thread_local raw::SignalSet t_host_mask = 0;

}  // namespace kshim::shim
