// SPDX-License-Identifier: Apache-2.0
// PTX text.
#include "fuzz_target.h"
#include "kshim/image/ptx.h"

using namespace kshim;
using namespace kshim::image;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes input = fuzz::input_of(data, size);
  const BlobKind kind = identify(input);
  const auto ptx = PtxReader::open(input);
  if (!ptx) {
    fuzz::require(ptx.error().offset <= input.size(), "an error lies inside the text");
    return 0;
  }
  fuzz::require(kind == BlobKind::ptx || kind == BlobKind::unknown, "PTX is taken for nothing else");
  fuzz::require(ptx->isa().known(), "PTX has a version");
  std::uint64_t cursor = 0;
  std::uint32_t budget = 32;  // kernels looked at closely
  for (;;) {
    const std::uint64_t before = cursor;
    const auto kernel = ptx->next_kernel(cursor);
    fuzz::require(cursor <= input.size(), "the walk stays inside the text");
    if (!kernel) break;
    fuzz::require(cursor > before, "the walk goes forward");
    fuzz::require(!kernel->name.empty(), "a kernel has a name");
    fuzz::require_inside(kernel->name, input);
    if (budget == 0) continue;
    --budget;
    for (std::uint32_t ordinal = 0; ordinal <= kernel->parameter_count && ordinal < 8; ++ordinal) {
      const auto parameter = ptx->parameter(kernel->name, ordinal);
      fuzz::require(parameter || parameter.error().code == Errc::not_found, "a parameter is there or not");
    }
  }
  cursor = 0;
  for (;;) {
    const std::uint64_t before = cursor;
    const auto global = ptx->next_global(cursor);
    fuzz::require(cursor <= input.size(), "the walk stays inside the text");
    if (!global) break;
    fuzz::require(cursor > before, "the walk goes forward");
    fuzz::require(!global->name.empty(), "a variable has a name");
    fuzz::require_inside(global->name, input);
  }
  return 0;
}
