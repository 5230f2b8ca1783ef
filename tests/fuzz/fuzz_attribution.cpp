// SPDX-License-Identifier: Apache-2.0
// What says whose a file is and where a kernel stands: headers of the rpm database, line tables of cubins,
// PTX. The first byte chooses.
#include "analyzer/device_code/source_lines.h"
#include "analyzer/owner/databases.h"
#include "fuzz_target.h"

using namespace kshim;

namespace {

void read_header(Bytes input) {
  const auto header = packages::RpmHeader::open(input);
  if (!header) return;
  static_cast<void>(header->version());
  fuzz::require(header->text(packages::RpmHeader::kName).size() < input.size(),
                "a text lies inside the header");
  for (std::uint64_t index = 0; index < 8; ++index) {
    const auto file = header->file(index);
    fuzz::require(!file || file->size() < 2 * input.size(), "a path lies inside the header");
  }
  static_cast<void>(header->file(0xffffffff));
}

void read_lines(image::ImageKind kind, Bytes input) {
  for (const auto& [kernel, at] : source::kernel_lines(kind, input)) {
    fuzz::require(!kernel.empty() && !at.file.empty() && at.line != 0, "a kernel stands somewhere");
    fuzz::require(kernel.size() <= input.size() && at.file.size() <= input.size() + 1,
                  "names lie inside the image");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Bytes input = fuzz::input_of(data + 1, size - 1);
  if (data[0] % 3 == 0) read_header(input);
  if (data[0] % 3 == 1) read_lines(image::ImageKind::cubin, input);
  if (data[0] % 3 == 2) read_lines(image::ImageKind::ptx, input);
  return 0;
}
