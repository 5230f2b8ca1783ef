// SPDX-License-Identifier: Apache-2.0
// Rules about what is around the device code: driver, contexts, configurations. No rebuild mends what they
// find.
#pragma once
#include <optional>

#include "analyzer/diagnose/rules.h"

namespace kshim::analysis {

std::optional<Match> driver_too_old(const Facts& facts);
/// 35 is also what a container without its GPU shows: there is no driver at all.
std::optional<Match> no_driver(const Facts& facts);
std::optional<Match> foreign_handle(const Facts& facts);
/// The launch itself is refused, though an image fits.
std::optional<Match> refused_configuration(const Facts& facts);
std::optional<Match> fork_after_init(const Facts& facts);

}  // namespace kshim::analysis
