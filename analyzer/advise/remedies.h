// SPDX-License-Identifier: Apache-2.0
// What to do about one message, where that is more than what its cause asks for.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "analyzer/core/finding.h"
#include "analyzer/diagnose/log_diagnosis.h"

namespace kshim::explain {

enum class Rest : std::uint8_t { also, releases, alone, last };
struct Remedy {
  std::string_view message;
  analysis::FixKind kind;
  Rest rest;
  const char* title;
  const char* command;
  const char* why;
  const char* caveat;
};
std::span<const Remedy> remedies();

/// The first line for a message that has one of its own; empty else.
std::string_view title_of_message(std::string_view message);
/// Puts what helps with the deciding line's message before the fixes of its cause, or in their place.
void add_remedies(const Clues& clues, const Judgement& judgement, analysis::Finding& finding);
/// The hit of messages.def on the deciding line that speaks for the cause; nullptr where none does.
const Hit* message_behind(const Clues& clues, const Judgement& judgement);

}  // namespace kshim::explain
