// SPDX-License-Identifier: Apache-2.0
// The rules for compilers, libraries (NVRTC, nvJitLink) and programs (ptxas, tileiras, nvcc, cicc, nvlink):
// one does not know an architecture yet, or no longer.
#pragma once

#include "analyzer/data/knowledge.h"
#include "analyzer/diagnose/rules.h"

namespace kshim::diagnose {

std::optional<Match> nvrtc_arch_unsupported(const Facts& facts);
/// The same of a program, by the tables of its release: what it was asked for, or the PTX ISA of its input.
std::optional<Match> refused_by_program(const CompilerFacts& compiler);
bool is_tile_compiler(std::string_view program);
/// Whether a program of that release compiles for it.
bool compiles_for(std::string_view program, const data::ToolkitRow& release, image::Arch arch);
/// The first release whose program compiles for it; nullptr when none does.
const data::ToolkitRow* first_release_for(std::string_view program, image::Arch arch);
const data::ToolkitRow* last_release_for(std::string_view program, image::Arch arch);

}  // namespace kshim::diagnose
