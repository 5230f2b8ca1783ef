// SPDX-License-Identifier: Apache-2.0
// Files by architectures, as text: who has SASS, who has PTX, and who runs on the targets.
#pragma once
#include "analyzer/render/page.h"
#include "analyzer/scan/scan.h"

namespace kshim::scan {

/// One line of the matrix: an object, or all objects of a distribution.
struct MatrixRow {
  std::string name;
  std::uint64_t bytes = 0;
  std::size_t files = 1;
  std::vector<analysis::ImageCount> images;
  std::vector<TargetVerdict> targets;
};

/// Objects by themselves, or summed by distribution where that makes fewer lines.
std::vector<MatrixRow> matrix_rows(const Scan& scan, bool by_distribution);
/// At most `most` rows, the largest ones; says how many are left out.
void print_matrix(const Scan& scan, std::vector<MatrixRow> rows, std::size_t most, analysis::Page& page);

/// "2.3 GB": decimal, as disks and downloads are measured.
std::string size_text(std::uint64_t bytes);

}  // namespace kshim::scan
