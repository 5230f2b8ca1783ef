// SPDX-License-Identifier: Apache-2.0
// Whole files: host programs (ELF, PE), bare images, wrappers and lists of parts.
#include "analyzer/device_code/device_code.h"
#include "fuzz_target.h"
#include "kshim/image/fatbin_search.h"
#include "kshim/image/pe.h"

using namespace kshim;
using namespace kshim::device_code;

namespace {

void read_pe(Bytes input) {
  const auto pe = image::PeReader::open(input);
  if (!pe) return;
  for (std::uint32_t index = 0; index < pe->section_count() && index < 64; ++index) {
    const auto section = pe->section(index);
    if (!section) break;
    fuzz::require_inside(section->name, input);
    fuzz::require_inside(section->bytes, input);
  }
}

void search(Bytes input) {
  std::uint64_t at = 0;
  for (; at < input.size(); ++at) {
    const std::uint64_t found = image::find_fatbin_or_cubin(input, at);
    fuzz::require(found >= at && found <= input.size(), "the search goes forward and stays in the file");
    at = found;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes input = fuzz::input_of(data, size);
  const DeviceCode code = find_device_code(input);
  // Entries are at least 64 bytes of the file, fatbins 16, and no byte is read twice as one.
  fuzz::require(code.images.size() <= input.size() / 64 + 1, "no more images than fit");
  fuzz::require(code.fatbins <= input.size() / 16, "no more fatbins than fit");
  fuzz::require(code.searched <= input.size(), "no byte is searched twice");
  for (const CodeImage& image : code.images) {
    fuzz::require_inside(image.payload, input);
    fuzz::require(image.offset < input.size(), "an image is in the file");
  }
  std::uint64_t last = 0;
  std::size_t listed = 0;
  for (const CodeModule& module : code.modules) {
    fuzz::require(listed == 0 || module.offset > last, "modules are in the order of the file");
    last = module.offset;
    ++listed;
    fuzz::require(std::uint64_t{module.first} + module.count <= code.images.size(),
                  "a module's images exist");
    for (const std::uint32_t part : module.parts)
      fuzz::require(part < code.images.size() && code.images[part].relocatable,
                    "a part is a relocatable image");
  }
  for (const Damage& damage : code.damage)
    fuzz::require(damage.offset <= input.size() && !damage.what.empty(), "damage has a place in the file");
  read_pe(input);
  search(input);
  return 0;
}
