// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "analyzer/advise/advice.h"

namespace kshim::analysis {

/// What PyTorch compiled when a program asked for it, for the GPU that was there: the folder of one
/// extension; empty for any other file.
std::string extension_folder(const AdviceInput& at);
/// A file in PyTorch's cache of compiled extensions: it is compiled anew once it is gone.
void add_extension_fix(const AdviceInput& at, std::vector<Fix>& fixes);
/// What conda, apt or dnf installed, where nothing better is known.
void add_package_fix(const AdviceInput& at, std::vector<Fix>& fixes);

}  // namespace kshim::analysis
