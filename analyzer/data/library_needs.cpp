// SPDX-License-Identifier: Apache-2.0
#include "analyzer/data/library_needs.h"

#include <algorithm>

#include "analyzer/data/knowledge_file.h"
#include "analyzer/data/wheels.h"

namespace kshim::analysis {
std::span<const LibraryNeedRow> library_needs() { return knowledge().library_needs; }

const LibraryNeedRow* library_need(std::string_view library, std::string_view distribution,
                                   std::string_view version) {
  const auto rows = library_needs();
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const LibraryNeedRow& known) {
    return known.library == library && known.distribution == distribution &&
           is_within(version, known.first, known.last);
  });
  return row == rows.end() ? nullptr : &*row;
}

}  // namespace kshim::analysis
