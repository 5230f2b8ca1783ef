// SPDX-License-Identifier: Apache-2.0
// Whole files, asked about through the interface of libkshim-query.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <numeric>
#include <string>

#include "fuzz_target.h"
#include "kshim/query.h"

using namespace kshim;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int file = ::memfd_create("input", MFD_CLOEXEC);
  fuzz::require(file >= 0 && ::write(file, data, size) == static_cast<ssize_t>(size), "there is a file");
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  // Each kernel on one of the GPUs, each GPU for one of the kernels: the input decides, and inputs that
  // differ in one bit differ.
  constexpr int kMajors[] = {7, 9, 12};
  unsigned turn = std::accumulate(data, data + size, 0U);
  for (const char* kernel : {static_cast<const char*>(nullptr), "first", "absent"}) {
    const int major = kMajors[turn++ % 3];
    const kshim_question question{sizeof question, path.c_str(), kernel, major, 0, 12040, 0};
    kshim_answer answer{};
    answer.size = sizeof answer;
    const int code = kshim_query(&question, &answer);
    fuzz::require(code == answer.code && code >= KSHIM_CODE_UNKNOWN && code <= KSHIM_CODE_NONE, "a code");
    fuzz::require(answer.reason != nullptr && *answer.reason != 0 && *answer.text != 0, "a reason");
    fuzz::require(std::memchr(answer.have, 0, sizeof answer.have) != nullptr, "`have` ends");
    fuzz::require(std::memchr(answer.image, 0, sizeof answer.image) != nullptr, "`image` ends");
    fuzz::require((code == KSHIM_CODE_SASS) == (answer.sass != 0), "machine code comes first");
    fuzz::require((code == KSHIM_CODE_SASS || code == KSHIM_CODE_JIT) == (answer.image[0] != 0),
                  "what runs has a name");
    fuzz::require(answer.modules == answer.sass + answer.jit + answer.lacking, "each module counts once");
    fuzz::require(code != KSHIM_CODE_UNKNOWN || answer.modules == 0, "of an unknown file nothing is said");
  }
  ::close(file);
  return 0;
}
