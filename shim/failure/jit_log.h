// SPDX-License-Identifier: Apache-2.0
// What the driver's JIT compiler says of a failed load, where the caller asked for it.
#pragma once
#include "cuda/call_args.h"
#include "guest/text_buffer.h"

namespace kshim::shim {

using JitLog = Text<4096>;

/// The text in the buffer that the call's options name (CU_JIT_ERROR_LOG_BUFFER), as far as it can be read.
void read_jit_log(const CallArgs& call, JitLog& out) noexcept;

}  // namespace kshim::shim
