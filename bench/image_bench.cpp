// SPDX-License-Identifier: Apache-2.0
// Listing images beside a bare walk over the same headers, and the choice of an image.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "kshim/image/fatbin.h"
#include "kshim/image/select.h"

namespace {

using kshim::Bytes;
using namespace kshim::image;

/// A fatbin of `count` cubin entries with 4 KiB payloads, as a library would hold it.
std::vector<std::byte> make_fatbin(unsigned count) {
  constexpr std::uint32_t kHeader = 64;
  constexpr std::uint64_t kPayload = 4096;
  std::vector<std::byte> out(16 + count * (kHeader + kPayload));
  const auto put = [&](std::size_t at, auto value) { std::memcpy(out.data() + at, &value, sizeof value); };
  put(0, kFatbinMagic);
  put(4, std::uint16_t{1});
  put(6, std::uint16_t{16});
  put(8, std::uint64_t{out.size() - 16});
  for (unsigned i = 0; i < count; ++i) {
    const std::size_t at = 16 + i * (kHeader + kPayload);
    put(at, std::uint16_t{2});
    put(at + 2, std::uint16_t{0x0101});
    put(at + 4, kHeader);
    put(at + 8, kPayload);
    put(at + 24, std::uint32_t{0x10008});
    put(at + 28, std::uint32_t{50 + 10 * (i % 7)});
    put(at + 40, std::uint64_t{0x11});
  }
  return out;
}

void list_images(benchmark::State& state) {
  const auto fatbin = make_fatbin(1000);
  for (auto _ : state) {
    auto reader = FatbinReader::open(fatbin);
    unsigned sum = 0;
    for (;;) {
      const auto image =
          reader ? const_cast<FatbinReader&>(*reader).next() : kshim::Result<Image>(reader.error());
      if (!image) break;
      sum += image->arch.cc.number();
    }
    benchmark::DoNotOptimize(sum);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * 1000);
}
BENCHMARK(list_images);

void bare_walk(benchmark::State& state) {
  const auto fatbin = make_fatbin(1000);
  for (auto _ : state) {
    unsigned sum = 0;
    for (std::size_t at = 16; at + 64 <= fatbin.size();) {
      std::uint32_t header = 0;
      std::uint32_t sm = 0;
      std::uint64_t payload = 0;
      std::memcpy(&header, fatbin.data() + at + 4, 4);
      std::memcpy(&payload, fatbin.data() + at + 8, 8);
      std::memcpy(&sm, fatbin.data() + at + 28, 4);
      sum += sm;
      at += header + payload;
    }
    benchmark::DoNotOptimize(sum);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * 1000);
}
BENCHMARK(bare_walk);

void choose_image(benchmark::State& state) {
  std::vector<Candidate> images;
  for (const unsigned sm : {75U, 80U, 86U, 89U, 90U, 100U, 120U})
    images.push_back({ImageKind::cubin, {ComputeCapability::from_number(sm), Suffix::none}, {}});
  images.push_back({ImageKind::ptx, {ComputeCapability::from_number(120), Suffix::none}, {9, 0}});
  const Platform platform{{12, 1}, {13, 0}, {}};
  for (auto _ : state) benchmark::DoNotOptimize(select_image(images, platform));
}
BENCHMARK(choose_image);

}  // namespace

BENCHMARK_MAIN();
