// SPDX-License-Identifier: Apache-2.0
// Commands for who pasted a log of Windows.
#pragma once
#include <optional>
#include <string>

#include "analyzer/advise/advice.h"

namespace kshim::explain {

/// A command of sh as PowerShell takes it, which most of them are in cmd as well; nullopt for what Windows
/// has nothing like.
std::optional<std::string> for_windows(const std::string& command);
/// The driver that Windows has in the place of each of Linux that stands in a text.
std::string windows_drivers(std::string text);
/// All that an advice says to do; commands without a counterpart are dropped.
void translate(analysis::Advice& advice);

}  // namespace kshim::explain
