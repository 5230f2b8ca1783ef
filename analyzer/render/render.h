// SPDX-License-Identifier: Apache-2.0
// The formats of analyzer/core/formats.def; docs/output.md says what each is. `github` is empty where there
// is nothing to say. What is not empty ends with a newline.
#pragma once

#include "analyzer/render/formats.h"
#include "analyzer/verbs/doctor.h"
#include "analyzer/verbs/explain.h"

namespace kshim::render {

std::string rendered(const verbs::Analysis& analysis, Format format, const RenderOptions& options);
#define KSHIM_FORMAT(id, writer) \
  std::string render_##writer(const verbs::Analysis& analysis, Format format, const RenderOptions& options);
#include "analyzer/core/formats.def"
#undef KSHIM_FORMAT

/// As text, Markdown or JSON (kshim-doctor/1).
std::string rendered(const verbs::Examination& examined, Format format, const RenderOptions& options);
/// As text, Markdown or JSON (kshim-explain/1).
std::string rendered(const verbs::Explanation& explanation, Format format, RenderOptions options);
}  // namespace kshim::render
