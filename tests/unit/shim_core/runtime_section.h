// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kshim::shim::test {

/// What ask() says when a wrapper of the runtime is on the stack.
bool asked_inside(bool (*ask)()) noexcept;

}  // namespace kshim::shim::test
