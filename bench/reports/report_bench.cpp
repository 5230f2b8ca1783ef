// SPDX-License-Identifier: Apache-2.0
// How fast reports are read, beside what cannot be done without: finding the line ends, and parsing the same
// lines.
//   report_bench [--benchmark_...] REPORT...
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <simdjson.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "analyzer/input/report/report_reader.h"
#include "analyzer/verbs/analysis.h"

using namespace kshim;
using namespace kshim::verbs;
using kshim::input::LineBuffer;
using kshim::input::read_report;

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> g_files;
std::int64_t g_bytes = 0;

// The same read() and the same buffer as the reader's.
template <class Visit>
void each_line(const fs::path& path, Visit&& visit) {
  constexpr std::size_t kChunk = std::size_t{1} << 20;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  LineBuffer buffer(simdjson::SIMDJSON_PADDING);
  for (;;) {
    const ssize_t got = ::read(fd, buffer.room(kChunk), kChunk);
    if (got <= 0) break;
    buffer.filled(static_cast<std::size_t>(got));
    buffer.drain([&](std::string_view line) {
      visit(line);
      return std::string();
    });
  }
  ::close(fd);
}

template <class Each>
void over_files(benchmark::State& state, Each&& each) {
  for ([[maybe_unused]] const auto turn : state) {
    for (const fs::path& file : g_files) each(file);
  }
  state.SetBytesProcessed(state.iterations() * g_bytes);
}

void find_lines(benchmark::State& state) {
  over_files(state, [](const fs::path& file) {
    std::size_t lines = 0;
    each_line(file, [&](std::string_view) { ++lines; });
    benchmark::DoNotOptimize(lines);
  });
}

void parse_lines(benchmark::State& state) {
  simdjson::dom::parser parser;
  over_files(state, [&](const fs::path& file) {
    std::size_t bad = 0;
    each_line(file, [&](std::string_view line) {
      if (parser.parse(line.data(), line.size(), false).error() != simdjson::SUCCESS) ++bad;
    });
    benchmark::DoNotOptimize(bad);
  });
}

void read_reports(benchmark::State& state) {
  over_files(state, [](const fs::path& file) {
    const auto report = read_report(file);
    benchmark::DoNotOptimize(&report);
  });
}

void analyze_reports(benchmark::State& state) {
  for ([[maybe_unused]] const auto turn : state) {
    const auto analysis = analyze(g_files, {});
    benchmark::DoNotOptimize(&analysis);
  }
  state.SetBytesProcessed(state.iterations() * g_bytes);
}

BENCHMARK(find_lines)->Name("line ends (memchr)")->Unit(benchmark::kMillisecond);
BENCHMARK(parse_lines)->Name("bare simdjson, a line at a time")->Unit(benchmark::kMillisecond);
BENCHMARK(read_reports)->Name("read_report")->Unit(benchmark::kMillisecond);
BENCHMARK(analyze_reports)->Name("analyze")->Unit(benchmark::kMillisecond);

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  for (int at = 1; at < argc; ++at) {
    std::error_code error;
    if (!fs::is_directory(argv[at], error)) {
      g_files.emplace_back(argv[at]);
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator(argv[at])) {
      if (entry.path().extension() == ".jsonl") g_files.push_back(entry.path());
    }
  }
  if (g_files.empty()) {
    std::fprintf(stderr,
                 "usage: report_bench [--benchmark_...] REPORT|FOLDER...; make_reports.py makes some\n");
    return 2;
  }
  for (const fs::path& file : g_files) g_bytes += static_cast<std::int64_t>(fs::file_size(file));
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
