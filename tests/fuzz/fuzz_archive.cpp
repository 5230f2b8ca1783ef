// SPDX-License-Identifier: Apache-2.0
// ar archives: the walk, and members read by their offset.
#include "fuzz_target.h"
#include "kshim/image/archive.h"

using namespace kshim;
using namespace kshim::image;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes input = fuzz::input_of(data, size);
  const auto opened = ArchiveReader::open(input);
  if (!opened) {
    fuzz::require(opened.error().offset <= input.size(), "an error lies inside the file");
    return 0;
  }
  ArchiveReader reader = *opened;
  std::uint64_t last = 0;
  for (;;) {
    const auto member = reader.next();
    fuzz::require_inside(reader.name(), input);
    if (!member && member.error().code == Errc::not_found) break;
    const std::uint64_t offset = member ? member->offset : member.error().offset;
    fuzz::require(offset > last && offset <= input.size(), "the walk goes forward and stays in the file");
    last = offset;
    if (!member) continue;
    fuzz::require_inside(member->name, input);
    fuzz::require_inside(member->bytes, input);
    fuzz::require(member->bytes.size() == member->size, "a member has the size that its header says");
  }
  return 0;
}
