// SPDX-License-Identifier: Apache-2.0
// What to do about one message, where that is more than what its cause asks for.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "analyzer/advise/advice.h"

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
/// Puts what helps with the message of a log's deciding line before the fixes of its cause, or in their
/// place.
void add_remedies(const analysis::AdviceInput& at, analysis::Advice& advice);

}  // namespace kshim::explain
