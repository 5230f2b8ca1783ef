// SPDX-License-Identifier: Apache-2.0
// Fatbins: the walk, the payloads, and what lies in them.
#include <vector>

#include "fuzz_target.h"
#include "kshim/image/cubin.h"
#include "kshim/image/decompress.h"
#include "kshim/image/fatbin.h"
#include "kshim/image/ptx.h"

using namespace kshim;
using namespace kshim::image;

namespace {

constexpr std::uint64_t kCeiling = 1 << 20;  // bytes: keeps an input's cost small

void read_payload(const Image& entry, std::vector<std::byte>& out) {
  const auto size = decompress(entry, out, kCeiling);
  if (!size) {
    fuzz::require(out.empty(), "a failed decompression leaves nothing behind");
    return;
  }
  fuzz::require(*size == out.size() && *size <= kCeiling, "the ceiling holds");
  if (entry.compression != Compression::none)
    fuzz::require(*size == entry.uncompressed_size, "the header's size is the payload's");
  if (const auto cubin = CubinReader::open(out)) {
    std::uint64_t cursor = 0;
    while (const auto name = cubin->next_name(cursor)) fuzz::require_inside(name->name, out);
  }
  if (const auto ptx = PtxReader::open(out)) {
    std::uint64_t cursor = 0;
    while (const auto kernel = ptx->next_kernel(cursor)) fuzz::require_inside(kernel->name, out);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes input = fuzz::input_of(data, size);
  static_cast<void>(identify(input));
  auto opened = FatbinReader::open(input);
  if (!opened) return 0;
  FatbinReader reader = *opened;
  fuzz::require(reader.size() <= input.size(), "a fatbin ends inside its file");
  std::vector<std::byte> payload;
  std::uint64_t last = 0;
  for (;;) {
    const auto entry = reader.next();
    if (!entry) {
      fuzz::require(entry.error().offset <= reader.size(), "an error lies inside the fatbin");
      if (entry.error().code == Errc::not_found) break;
      continue;  // an entry of an unknown kind does not end the walk
    }
    fuzz::require(entry->offset > last, "the walk goes forward");
    last = entry->offset;
    fuzz::require_inside(entry->payload, input);
    const ShortName name = to_name(entry->kind, entry->arch);
    const auto arch = parse_arch(name.view());
    fuzz::require(arch.ok() && *arch == entry->arch, "an architecture's name leads back to it");
    read_payload(*entry, payload);
  }
  return 0;
}
