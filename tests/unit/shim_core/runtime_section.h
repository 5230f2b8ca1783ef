// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kshim::shim::test {

/// What called_from_cudart() says when a wrapper of the runtime is on the stack.
bool asked_inside() noexcept;

}  // namespace kshim::shim::test
