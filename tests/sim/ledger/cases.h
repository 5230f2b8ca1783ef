// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <map>
#include <string>

namespace kshim::sim::ledger {

/// By call and arguments, with a tab between them: what is called, and says "CODE" or "CODE what came back".
const std::map<std::string, std::function<std::string()>>& cases();

/// Of attributes.tsv, in the order of its columns. The first stands twice in the list of devices, as in the
/// machine that the calls were recorded on.
constexpr int kCards = 4;

}  // namespace kshim::sim::ledger
