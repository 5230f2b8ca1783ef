// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/verbs/analysis.h"

namespace kshim::verbs {

/// The exception that ended the program, else its last line.
LastWords last_words(std::string_view text);

}  // namespace kshim::verbs
