// SPDX-License-Identifier: Apache-2.0
// mutate_reports RUNS FOLDER: the fuzz target of reports without a fuzzer, for compilers that have none: each
// file of FOLDER in turn, mutated again and again, with a fixed seed. An input that ends the process is in
// mutated.jsonl of the working folder.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

#include "fuzz_target.h"
#include "report_mutator.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::vector<std::string> seeds;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(argv[2], error)) {
    std::ifstream file(entry.path(), std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  if (seeds.empty()) return 1;
  std::sort(seeds.begin(), seeds.end());
  std::mt19937 random(1);
  constexpr std::size_t kMax = 256 << 10;
  constexpr unsigned kGenerations = 8;
  const long runs = std::atol(argv[1]);
  std::string input;
  for (long run = 0; run < runs; ++run) {
    if (run % kGenerations == 0) input = seeds[static_cast<std::size_t>(run / kGenerations) % seeds.size()];
    input = kshim::fuzz::mutate_report(input, kMax, random);
    std::ofstream("mutated.jsonl", std::ios::binary) << input;
    static_cast<void>(
        LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size()));
  }
  std::filesystem::remove("mutated.jsonl", error);
  std::printf("%zu seeds, %ld runs\n", seeds.size(), runs);
  return 0;
}
