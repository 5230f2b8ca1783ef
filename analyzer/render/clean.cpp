// SPDX-License-Identifier: Apache-2.0
// Every string of an analysis made harmless before anything is laid out, so that no place that prints can
// forget it.
#include "analyzer/render/clean.h"

#include "analyzer/core/text.h"
#include "analyzer/render/each_string.h"

namespace kshim::analysis {

Analysis cleaned(Analysis analysis, bool unicode) {
  each_string(analysis, [unicode](std::string& text) { text = unicode ? harmless(text) : ascii(text); });
  return analysis;
}

}  // namespace kshim::analysis
