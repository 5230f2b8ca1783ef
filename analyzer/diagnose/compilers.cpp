// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/compilers.h"

#include "analyzer/core/text.h"

namespace kshim::diagnose {
using data::ToolkitRow;

namespace {

std::string name(image::Arch arch) { return std::string(image::to_name(image::ImageKind::ptx, arch).view()); }
std::string library(const CompilerFacts& compiler) {
  return compiler.version.known() ? fmt::format("{} {}", compiler.name, name(compiler.version))
                                  : compiler.name;
}

// "CUDA 12.9 was the last that did", "CUDA 12.8 is the first that does"; empty where the tables say neither.
std::string since_when(const CompilerFacts& compiler) {
  const image::Arch plain{compiler.asked.cc, image::Suffix::none};
  const ToolkitRow* first = first_release_for(compiler.name, plain);
  const ToolkitRow* last = last_release_for(compiler.name, plain);
  if (first == nullptr || !compiler.version.known()) return {};
  if (compiler.version < first->version)
    return fmt::format(": CUDA {} is the first that does", name(first->version));
  if (last->version < compiler.version && last != &data::toolkits().back())
    return fmt::format(": CUDA {} was the last that did", name(last->version));
  return {};
}

}  // namespace

bool is_tile_compiler(std::string_view program) { return program.starts_with("tileiras"); }

bool compiles_for(std::string_view program, const ToolkitRow& release, image::Arch arch) {
  return is_tile_compiler(program) ? builds_tiles_for(release, arch) : builds_for(release, arch);
}

const ToolkitRow* first_release_for(std::string_view program, image::Arch arch) {
  return data::first_row(data::toolkits(),
                         [&](const ToolkitRow& row) { return compiles_for(program, row, arch); });
}

const ToolkitRow* last_release_for(std::string_view program, image::Arch arch) {
  return data::last_row(data::toolkits(),
                        [&](const ToolkitRow& row) { return compiles_for(program, row, arch); });
}

std::optional<Match> refused_by_program(const CompilerFacts& compiler) {
  constexpr double kByTable = 0.93;
  const ToolkitRow* row = data::find_toolkit(compiler.version);
  if (row == nullptr) return std::nullopt;
  if (compiler.asked.cc.major != 0 && !compiles_for(compiler.name, *row, compiler.asked))
    return Match{kByTable, fmt::format("{} was asked for {} and does not compile for it{}", library(compiler),
                                       sm_name(compiler.asked), since_when(compiler))};
  if (compiler.input_isa.known() && row->isa < compiler.input_isa)
    return Match{kByTable, fmt::format("{} reads PTX up to ISA {}, and its input is of ISA {}",
                                       library(compiler), name(row->isa), name(compiler.input_isa))};
  return std::nullopt;
}

std::optional<Match> nvrtc_arch_unsupported(const Facts& facts) {
  constexpr double kByItsOwnList = 0.98;
  constexpr double kByTable = 0.93;
  constexpr double kByCode = 0.6;
  if (!facts.call.compiler) return std::nullopt;
  const CompilerFacts& compiler = *facts.call.compiler;
  const bool listed =
      std::ranges::any_of(compiler.known, [&](image::Arch arch) { return arch.cc == compiler.asked.cc; });
  if (!compiler.known.empty()) {
    if (listed) return std::nullopt;
    return Match{kByItsOwnList,
                 fmt::format("{} was asked to compile for {} and lists {} to {}{}", library(compiler),
                             name(compiler.asked), name(compiler.known.front()), name(compiler.known.back()),
                             since_when(compiler))};
  }
  const ToolkitRow* row = compiler.version.known() ? data::toolkit_at_most(compiler.version) : nullptr;
  const bool in_table = row != nullptr && row->version == compiler.version;
  const image::Arch plain{compiler.asked.cc, image::Suffix::none};
  if (in_table ? builds_for(*row, plain) : !compiler.by_code) return std::nullopt;
  return Match{in_table ? kByTable : kByCode,
               fmt::format("{} was asked for {} and does not compile for it{}", library(compiler),
                           name(compiler.asked), since_when(compiler))};
}

}  // namespace kshim::diagnose
