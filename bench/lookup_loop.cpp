// SPDX-License-Identifier: Apache-2.0
// lookup_loop FILE find|pass: microseconds that a runtime's start-up look-ups take, once, in a fresh process:
// the dlsym that finds cuGetProcAddress, or all the questions that follow. FILE has a line "NAME VERSION
// FLAGS" for each, as a runtime asked them ("-" stands for the empty name). Linked to no CUDA.
#include <dlfcn.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

using GetProcAddress = int (*)(const char*, void**, int, std::uint64_t, int*);

struct Question {
  std::string name;
  int version = 0;
  std::uint64_t flags = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::vector<Question> questions;
  std::ifstream file(argv[1]);
  for (Question question; file >> question.name >> question.version >> question.flags;) {
    if (question.name == "-") question.name.clear();
    questions.push_back(question);
  }
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr || questions.empty()) return 1;
  using Clock = std::chrono::steady_clock;
  const auto before = Clock::now();
  auto get = reinterpret_cast<GetProcAddress>(dlsym(driver, "cuGetProcAddress_v2"));
  if (get == nullptr) return 1;
  const auto found_it = Clock::now();
  for (const Question& question : questions) {
    void* found = nullptr;
    const int code = get(question.name.c_str(), &found, question.version, question.flags, nullptr);
    // As the runtime does: from here on it asks the function that it was given.
    if (code == 0 && question.name == "cuGetProcAddress" && question.version >= 12000)
      get = reinterpret_cast<GetProcAddress>(found);
  }
  const std::chrono::duration<double, std::micro> find = found_it - before;
  const std::chrono::duration<double, std::micro> pass = Clock::now() - found_it;
  std::printf("%.2f\n", (std::string_view(argv[2]) == "find" ? find : pass).count());
}
