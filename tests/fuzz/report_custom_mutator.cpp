// SPDX-License-Identifier: Apache-2.0
// libFuzzer's hook: records as a rule, bytes now and then.
#include <cstring>

#include "report_mutator.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  std::mt19937 random(seed);
  constexpr unsigned kBytes = 12;
  if (random() % kBytes == 0) return LLVMFuzzerMutate(data, size, max_size);
  const std::string out =
      kshim::fuzz::mutate_report({reinterpret_cast<const char*>(data), size}, max_size, random);
  std::memcpy(data, out.data(), out.size());
  return out.size();
}
