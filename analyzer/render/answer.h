// SPDX-License-Identifier: Apache-2.0
// The answer on a screen: one finding in at most fifteen lines. Everything else is on the page of --verbose.
#pragma once

#include "analyzer/render/document.h"

namespace kshim::render {

/// What a reader knows of a finding beside the finding.
struct AnswerAt {
  core::ReportLine line = {};  ///< of a log: the line that decides
  std::string quote = {};      ///< that line
  core::TextPart part = {};    ///< of it, what decided
  std::string decide = {};     ///< the one command that would decide; empty where none is known
};

/// What failed, where, what to do and by whom, why, another way of somebody else, what not to try.
void write_answer(const core::Finding& finding, std::size_t number, const AnswerAt& at, Document& document);

/// The same form for a failure outside of CUDA.
core::Finding outside_cuda(const verbs::OtherAnswer& other);

/// The first two problems as answers; the others are counted. `at` is about the first one.
void write_answers(std::span<const core::Finding> findings, const AnswerAt& at, Document& document);

}  // namespace kshim::render
