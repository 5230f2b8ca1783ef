// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/compare/diff.h"

namespace kshim::diff {

/// Which object of `a` is which of `b`: by path, then by the part of the path inside a distribution, then by
/// name, then by build id. What has no counterpart stands alone. In the order of `a`, then of `b`.
/// `named`: the user named the files, so that two which are alone are each other's, whatever they are called.
std::vector<Pair> match(const std::vector<Object>& a, const std::vector<Object>& b, bool named);

/// "libcudart-e409450e.so.11.0" and "libcudart.so.12" as libcudart.so; "_C.cpython-311-x86_64-linux-gnu.so"
/// as _C.so: what stays of a file's name when its version changes.
std::string stem(std::string_view file);
/// "torch-2.9.1+cu128-cp311-cp311-linux_x86_64.whl" as torch; of other archives the name without a version.
std::string distribution(std::string_view archive);

}  // namespace kshim::diff
