// SPDX-License-Identifier: Apache-2.0
// replay [--lengths=N] [--flips=N] FOLDER: a fuzz target without a fuzzer, for compilers that have none.
// Gives it every file of FOLDER whole, cut off at every length (of larger files, at 256 lengths), and with
// each of up to 4096 bits flipped.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <vector>

#include "fuzz_target.h"

namespace {

using Input = std::vector<std::uint8_t>;

std::size_t lengths = 256;
std::size_t flips = 4096;

/// A copy of its own for each call, so that AddressSanitizer sees a read behind the end.
void run(const Input& input, std::size_t size) {
  const Input copy(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(size));
  static_cast<void>(LLVMFuzzerTestOneInput(copy.data(), copy.size()));
}

std::size_t replay(Input input) {
  std::size_t runs = 1;
  run(input, input.size());
  const std::size_t step = std::max<std::size_t>(1, input.size() / lengths);
  for (std::size_t size = 0; size < input.size(); size += step, ++runs) run(input, size);
  const std::size_t bits = input.size() * 8;
  const std::size_t stride = std::max<std::size_t>(1, bits / flips);
  for (std::size_t bit = 0; bit < bits; bit += stride, ++runs) {
    const auto mask = static_cast<std::uint8_t>(1U << bit % 8);
    input[bit / 8] ^= mask;
    run(input, input.size());
    input[bit / 8] ^= mask;
  }
  return runs;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t files = 0;
  std::size_t runs = 0;
  for (int at = 1; at < argc; ++at) {
    const std::string_view word = argv[at];
    if (word.starts_with("--")) {
      (word.starts_with("--flips") ? flips : lengths) =
          std::strtoul(argv[at] + word.find('=') + 1, nullptr, 10);
      continue;
    }
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(argv[at], error)) {
      std::ifstream file(entry.path(), std::ios::binary);
      runs += replay(Input(std::istreambuf_iterator<char>(file), {}));
      ++files;
    }
  }
  std::printf("%zu files, %zu runs\n", files, runs);
  return files == 0 ? 1 : 0;
}
