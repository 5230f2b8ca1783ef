// SPDX-License-Identifier: Apache-2.0
// The help screens: the list of commands, and a formatter that keeps each command's options within 80
// columns.
#pragma once
#include <CLI/CLI.hpp>
#include <span>
#include <string>

#include "analyzer/cli/command.h"

namespace kshim::cli {

std::string version_line();
std::string overview(std::span<const Command> commands);
/// Gives `app` the look of kshim's help: usage, options, example.
void style_help(CLI::App& app, const Command& command);

}  // namespace kshim::cli
