// SPDX-License-Identifier: Apache-2.0
// One finding on a page.
#pragma once
#include <string>

#include "analyzer/render/page.h"

namespace kshim::analysis {

/// "saxpy cannot run: build/saxpy has no code for NVIDIA GeForce GTX 1080 (6.1)"
std::string title_of(const Finding& finding);
Tone tone_of(Severity severity);
/// A headline that counts what there is needs no "probably" and no percentage: it says itself how much is
/// known.
bool counts(const Finding& finding);
/// "train.py:17, in step"
std::string place_text(const Place& place);
/// The phrase that a person reads first, with nothing left to fill in: for programs.
std::string headline_of(const Finding& finding);
/// ", 3 times; 2 other calls failed with it": empty for what happened once.
std::string how_often(const Finding& finding);
/// title_of() as one; the name of a file that it begins with stays as it is.
std::string title_sentence(const Finding& finding);

/// brief: title, place and the first fix. shared: what several findings leave room for. full: all a person
/// needs. everything: without limits on lists.
enum class Detail : std::uint8_t { brief, shared, full, everything };
void print_finding(const Finding& finding, Detail detail, Page& page);

}  // namespace kshim::analysis
