// SPDX-License-Identifier: Apache-2.0
// What `kshim scan --kernels` costs beside decompressing the same payloads and looking at none of them, on
// one thread; and what scanning a wheel costs beside inflating the same members and looking at none of them.
//   rates FILE... [WHEEL...]     each in turn, three times; the smallest of each
#include <archive.h>
#include <archive_entry.h>
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "analyzer/device_code/device_code.h"
#include "analyzer/device_code/mapped_file.h"
#include "analyzer/diagnose/coverage.h"
#include "analyzer/verbs/scan.h"
#include "kshim/image/decompress.h"

namespace {

using namespace kshim;
using namespace kshim::verbs;
using kshim::device_code::CodeImage;
using kshim::device_code::DeviceCode;
using kshim::device_code::find_device_code;
using kshim::device_code::MappedFile;
using kshim::diagnose::cover;
using kshim::diagnose::KernelTable;
using Clock = std::chrono::steady_clock;
constexpr int kRounds = 3;

double seconds_of(const auto& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Pair {
  double bare = 1e9;
  double ours = 1e9;
  std::uint64_t bytes = 0;
};

void add(const auto& bare, const auto& ours, Pair& pair) {
  for (int round = 0; round < kRounds; ++round) {
    pair.bare = std::min(pair.bare, seconds_of(bare));
    pair.ours = std::min(pair.ours, seconds_of(ours));
  }
}

Pair kernels(Bytes file) {
  const DeviceCode code = find_device_code(file);
  Pair pair;
  std::uint64_t sum = 0;
  add(
      [&] {
        image::Decompressor decompressor;
        pair.bytes = 0;
        for (const CodeImage& each : code.images) {
          image::Image entry;
          entry.compression = each.compression;
          entry.uncompressed_size = each.bytes;
          entry.payload = each.payload;
          if (each.candidate.kind == image::ImageKind::ltoir) continue;
          if (const auto clear = decompressor.run(entry)) {
            pair.bytes += clear->size();
            sum += static_cast<std::uint64_t>(clear->empty() ? std::byte{} : clear->front());
          }
        }
      },
      [&] {
        KernelTable table;
        cover(code, {}, {}, &table);
        sum += table.kernels.size();
      },
      pair);
  if (sum == 0) fmt::print("");
  return pair;
}

std::uint64_t inflate(Bytes wheel) {
  std::uint64_t bytes = 0;
  archive* reader = archive_read_new();
  archive_read_support_format_zip_seekable(reader);
  if (archive_read_open_memory(reader, wheel.data(), wheel.size()) == ARCHIVE_OK) {
    archive_entry* entry = nullptr;
    while (archive_read_next_header(reader, &entry) == ARCHIVE_OK) {
      const std::string name = archive_entry_pathname(entry);
      if (name.find(".so") == std::string::npos) continue;
      const void* data = nullptr;
      std::size_t size = 0;
      la_int64_t offset = 0;
      while (archive_read_data_block(reader, &data, &size, &offset) == ARCHIVE_OK) bytes += size;
    }
  }
  archive_read_free(reader);
  return bytes;
}

Pair wheel(const std::string& path, Bytes bytes) {
  Pair pair;
  add([&] { pair.bytes = inflate(bytes); },
      [&] {
        ScanRequest options;
        options.jobs = 1;
        scan({path}, options);
      },
      pair);
  return pair;
}

}  // namespace

int main(int argc, char** argv) {
  fmt::print("{:<44} {:>8} {:>12} {:>12} {:>7}\n", "file", "GB clear", "bare GB/s", "kshim GB/s", "ratio");
  for (int i = 1; i < argc; ++i) {
    const std::string path = argv[i];
    auto opened = MappedFile::open(path);
    if (auto* why = std::get_if<std::string>(&opened)) {
      fmt::print(stderr, "{}: {}\n", path, *why);
      return 1;
    }
    const Bytes bytes = std::get<MappedFile>(opened).bytes();
    const Pair pair = path.ends_with(".whl") ? wheel(path, bytes) : kernels(bytes);
    const double clear = static_cast<double>(pair.bytes) / 1e9;
    fmt::print("{:<44} {:>8.2f} {:>12.2f} {:>12.2f} {:>7.2f}\n",
               path.substr(path.rfind('/') + 1).substr(0, 44), clear, clear / pair.bare, clear / pair.ours,
               pair.bare / pair.ours);
  }
  return 0;
}
