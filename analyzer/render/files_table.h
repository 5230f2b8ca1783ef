// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>

#include "analyzer/core/finding.h"
#include "analyzer/render/document.h"

namespace kshim::analysis {

/// The files that findings are about, by what they are built for and by GPUs: each cell says what is wrong,
/// and where on the page the reason stands. Nothing where one finding says it all, unless `always`.
void write_files_table(std::span<const Finding> findings, bool always, Document& document);

}  // namespace kshim::analysis
