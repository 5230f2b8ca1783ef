// SPDX-License-Identifier: Apache-2.0
// Where a kernel stands: line tables of cubins, PTX. The first byte chooses.
#include "analyzer/device_code/source_lines.h"
#include "fuzz_target.h"

using namespace kshim;
using namespace kshim::device_code;

namespace {

void read_lines(image::ImageKind kind, Bytes input) {
  for (const auto& [kernel, at] : kernel_lines(kind, input)) {
    fuzz::require(!kernel.empty() && !at.file.empty() && at.line != 0, "a kernel stands somewhere");
    fuzz::require(kernel.size() <= input.size() && at.file.size() <= input.size() + 1,
                  "names lie inside the image");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Bytes input = fuzz::input_of(data + 1, size - 1);
  read_lines(data[0] % 2 != 0 ? image::ImageKind::cubin : image::ImageKind::ptx, input);
  return 0;
}
