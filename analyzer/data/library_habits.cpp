// SPDX-License-Identifier: Apache-2.0
#include "analyzer/data/library_habits.h"

#include <algorithm>

namespace kshim::analysis {
namespace {

#define KSHIM_STATELESS_LIBRARY(...)
#define KSHIM_LIBRARY_PARTS(...)
#define KSHIM_LIBRARY_USES(...)
#undef KSHIM_STATELESS_LIBRARY
#define KSHIM_STATELESS_LIBRARY(prefix, why, source_ids) {prefix, why, source_ids},
constexpr StatelessLibraryRow kStateless[] = {
#include "analyzer/data/library_habits.def"
};
#undef KSHIM_STATELESS_LIBRARY
#define KSHIM_STATELESS_LIBRARY(...)
#undef KSHIM_LIBRARY_PARTS
#define KSHIM_LIBRARY_PARTS(library, part, why, source_ids) {library, part, why, source_ids},
constexpr LibraryPartsRow kParts[] = {
#include "analyzer/data/library_habits.def"
};
#undef KSHIM_LIBRARY_PARTS
#define KSHIM_LIBRARY_PARTS(...)
#undef KSHIM_LIBRARY_USES
#define KSHIM_LIBRARY_USES(library, used, source_ids) {library, used, source_ids},
constexpr LibraryUsesRow kUses[] = {
#include "analyzer/data/library_habits.def"
};
#undef KSHIM_LIBRARY_USES
#undef KSHIM_LIBRARY_PARTS
#undef KSHIM_STATELESS_LIBRARY

}  // namespace

std::span<const StatelessLibraryRow> stateless_libraries() { return kStateless; }
std::span<const LibraryPartsRow> library_parts() { return kParts; }
std::span<const LibraryUsesRow> library_uses() { return kUses; }

bool is_stateless_library(std::string_view family) {
  return std::any_of(std::begin(kStateless), std::end(kStateless), [&](const StatelessLibraryRow& row) {
    // The driver's own name is short: libcuda.so alone, and not libcudart.so.
    return row.prefix == "cuda" ? family == row.prefix : family.starts_with(row.prefix);
  });
}

}  // namespace kshim::analysis
