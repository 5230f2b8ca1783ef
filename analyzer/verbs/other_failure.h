// SPDX-License-Identifier: Apache-2.0
// What fails outside of CUDA, though people take it for CUDA's: the table not_cuda, and what to do about it.
#pragma once

#include "analyzer/diagnose/facts.h"
#include "analyzer/input/log/clues.h"

namespace kshim::verbs {

struct OtherAnswer {
  std::uint64_t line = 0;
  std::string quote;
  core::TextPart part;
  std::string what;  ///< a clause
  core::Fix remedy;
};

/// `environment`: of the program that failed, where it is known. The package of a file that the line names is
/// the one whose RECORD lists it.
OtherAnswer other_answer(const input::LogFacts& clues, const input::OtherFailure& other,
                         const owner::PythonEnvironment& environment = {});

}  // namespace kshim::verbs
