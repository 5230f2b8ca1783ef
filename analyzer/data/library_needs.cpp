// SPDX-License-Identifier: Apache-2.0
#include "analyzer/data/library_needs.h"

#include <algorithm>

#include "analyzer/data/wheels.h"

namespace kshim::analysis {
namespace {

constexpr LibraryNeedRow kNeeds[] = {
#define KSHIM_LIBRARY_NEED(library, distribution, first, last, oldest, source_ids) \
  {library, distribution, first, last, oldest, source_ids},
#include "analyzer/data/library_needs.def"
#undef KSHIM_LIBRARY_NEED
};

}  // namespace

std::span<const LibraryNeedRow> library_needs() { return kNeeds; }

const LibraryNeedRow* library_need(std::string_view library, std::string_view distribution,
                                   std::string_view version) {
  const auto* row = std::find_if(std::begin(kNeeds), std::end(kNeeds), [&](const LibraryNeedRow& known) {
    return known.library == library && known.distribution == distribution &&
           is_within(version, known.first, known.last);
  });
  return row == std::end(kNeeds) ? nullptr : row;
}

}  // namespace kshim::analysis
