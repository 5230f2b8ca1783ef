// SPDX-License-Identifier: Apache-2.0
// The rows of the tables of knowledge/*.json, as tables.def lists them. Texts are never freed.
#pragma once

#include "analyzer/core/finding.h"

namespace kshim::data {

/// An enum whose words stand in the tables as they are written here.
#define KSHIM_WORDS(Name, ...)                    \
  enum class Name : std::uint8_t { __VA_ARGS__ }; \
  constexpr std::string_view words_of(Name) { return #__VA_ARGS__; }
/// How a build system wants its architectures: the names of arch_list().
KSHIM_WORDS(ArchList, gencode, values, cmake, numbers, torch, plain, comma, spaces, dots, xla, flash, kokkos,
            lowest, rules_cuda, locked, added)
/// What of a recipe pip does.
KSHIM_WORDS(Pip, none, here, isolated, after_steps, removes)
/// How a row is known: its files were read, some of its releases' were, its maker states it, or a build
/// script does.
KSHIM_WORDS(Basis, measured, interpolated, documented, declared)
KSHIM_WORDS(FrameOwner, user, library, generated, launcher, plumbing)
KSHIM_WORDS(FrameMatch, begins, holds, script, file_begins, path_begins, path_holds, symbol_begins,
            symbol_holds, source_holds)
KSHIM_WORDS(MessageScope, anywhere, hint, brief, vague, source)
KSHIM_WORDS(ClueKind, cc, cc_found, cc2, sm, driver_module, driver_cuda, toolkit, toolkit_said, toolkit_tag,
            cc_major, cc_minor, compiler_package, arch_variable, arch_flags, cubin, ptx, file, arch_list,
            arch_option, arch_words, ptx_words, arch100, traceback, frame, env, run_time_compiler,
            python_release, container_image, gpu_number, ordinal, build_system, library_there, installed,
            cuda_wheel, listing, there, driver_release, memory, speaker, command, folder, works, tried,
            minimum, ptx_isa, solved, own_python, shows, said)
KSHIM_WORDS(Sign, goes_on, on_cpu, works, finished, dies, thrown, warns)
KSHIM_WORDS(Answer, cc2, arch_list, toolkit, torch)
/// What becomes of the fixes of the cause beside one for the message.
KSHIM_WORDS(Rest, also, releases, alone, last)

/// By "base", "a" and "f".
using FirstIsas = std::map<std::string_view, image::Version>;

#define KSHIM_FIELD(type, name) type name{};
#define KSHIM_AS(type, name, key) type name{};
#define KSHIM_LEFT(key)
#define KSHIM_RELEASE(name) std::string_view name{};
#define KSHIM_ANY(name) std::string_view name{};
#define KSHIM_BASIS(name) bool name{};
#define KSHIM_TABLE(section, Row, ...) \
  struct Row {                         \
    __VA_ARGS__                        \
  };                                   \
  std::span<const Row> section();
#include "analyzer/data/tables.def"

/// The first row that fits, and the last one; nullptr where none does.
template <class Rows, class Fits>
auto first_row(const Rows& rows, Fits&& fits) -> decltype(std::data(rows)) {
  for (const auto& row : rows)
    if (fits(row)) return &row;
  return nullptr;
}
template <class Rows, class Fits>
auto last_row(const Rows& rows, Fits&& fits) -> decltype(std::data(rows)) {
  decltype(std::data(rows)) found = nullptr;
  for (const auto& row : rows)
    if (fits(row)) found = &row;
  return found;
}

}  // namespace kshim::data
