// SPDX-License-Identifier: Apache-2.0
// A damaged file, one that is cut off and one that changes are unknown, and none of them ends the process.
#include <sys/resource.h>

#include <atomic>
#include <thread>

#include "packed_payload.h"
#include "query_fixture.h"

namespace kshim::test {
namespace {

class QueryDamage : public Query {};

std::vector<std::pair<std::string, Buffer>> sound_files() {
  const Buffer plain = cubin_of(80, {"scale", "other"});
  FatbinBuilder packed;
  packed.add({.arch = arch_of(80),
              .payload = pack(image::Compression::zstd, plain),
              .compression = image::Compression::zstd,
              .uncompressed_size = plain.size()});
  packed.ptx(arch_of(80), {8, 0}, ptx_of(80, {"scale"}));
  return {{"fatbin", packed.build()},
          {"cubin", plain},
          {"ptx", to_buffer(ptx_of(80, {"scale"}))},
          {"host", host_of({packed, packed})}};
}

TEST_F(QueryDamage, CutOffAnywhere) {
  for (const auto& [name, whole] : sound_files()) {
    const std::string file = write(name, Bytes(whole));
    ASSERT_EQ(ask(file, 80, "scale").code, name == "ptx" ? KSHIM_CODE_JIT : KSHIM_CODE_SASS) << name;
    const std::size_t needed =
        name == "ptx" ? whole.size() - 1 : whole.size();  // the last line break says nothing
    for (std::size_t size = 0; size < needed; ++size) {
      write(name, Bytes(whole).first(size));
      for (const char* kernel : {static_cast<const char*>(nullptr), "scale"}) {
        const Asked asked = ask(file, 80, kernel);
        ASSERT_EQ(asked.code, KSHIM_CODE_UNKNOWN) << name << " of " << size << " bytes: " << asked.reason;
      }
    }
  }
}

TEST_F(QueryDamage, ByteByByte) {
  // No answer is asked for but that there is one: many bytes of a file say nothing that is read.
  for (const auto& [name, whole] : sound_files()) {
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (const unsigned mask : {0xffU, 0x01U, 0x80U}) {
        Buffer bytes = whole;
        bytes[at] ^= static_cast<std::byte>(mask);
        const std::string file = write(name, Bytes(bytes));
        ask(file, 80);
        ask(file, 80, "scale");
      }
      if (at > 300) at += 12;
    }
  }
}

TEST_F(QueryDamage, APayloadThatDoesNotDecompress) {
  const Buffer plain = cubin_of(80, {"scale"});
  Buffer payload = pack(image::Compression::zstd, plain);
  payload[payload.size() / 2] ^= std::byte{0xff};
  payload.resize(payload.size() - 3);
  FatbinBuilder fatbin;
  fatbin.add({.arch = arch_of(80),
              .payload = payload,
              .compression = image::Compression::zstd,
              .uncompressed_size = plain.size()});
  const std::string file = write("f.fatbin", fatbin);
  EXPECT_EQ(ask(file, 80).reason, "damaged");
  EXPECT_EQ(ask(file, 80, "scale").reason, "damaged");
}

TEST_F(QueryDamage, AClaimOfManyGigabytes) {
  FatbinBuilder fatbin;
  fatbin.add({.arch = arch_of(80),
              .payload = Buffer(4096),
              .compression = image::Compression::zstd,
              .uncompressed_size = std::uint64_t{1} << 40U});
  EXPECT_EQ(ask(write("f.fatbin", fatbin), 80, "scale").code, KSHIM_CODE_UNKNOWN);
  // A file of holes: a terabyte that takes no room.
  const std::string holes = write("holes.so", Bytes(host_of({})));
  ASSERT_EQ(::truncate(holes.c_str(), std::int64_t{1} << 40U), 0);
  EXPECT_EQ(ask(holes, 80).reason, "too_large");
}

TEST_F(QueryDamage, NotAFile) {
  EXPECT_EQ(ask(path("missing"), 80).reason, "cannot_open");
  EXPECT_EQ(ask(folder_, 80).reason, "not_a_file");
  EXPECT_EQ(ask("/dev/null", 80).reason, "not_a_file");
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(ask(path("fifo"), 80).reason, "not_a_file");  // and does not wait for a writer
  ASSERT_EQ(::symlink("loop", path("loop").c_str()), 0);
  EXPECT_EQ(ask(path("loop"), 80).reason, "cannot_open");
  EXPECT_EQ(ask(write("empty", Bytes()), 80).code, KSHIM_CODE_UNKNOWN);
}

/// One that another takes the place of keeps its contents for the programs that have it open.
TEST_F(QueryDamage, ReplacedWhileItIsAskedFor) {
  const Buffer ampere = host_of({FatbinBuilder{}.cubin(arch_of(80), cubin_of(80, {"scale"}))});
  const Buffer hopper = host_of({FatbinBuilder{}.cubin(arch_of(90), cubin_of(90, {"scale"}))});
  const std::string file = write("f.so", Bytes(ampere));
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (unsigned i = 0; !stop; ++i) {
      write("new", Bytes(i % 2 == 0 ? hopper : ampere));
      std::filesystem::rename(path("new"), file);
    }
  });
  std::vector<std::thread> readers;
  std::atomic<unsigned> yes{0}, no{0};
  for (int i = 0; i < 4; ++i)
    readers.emplace_back([&] {
      for (int k = 0; k < 500; ++k) {
        const Asked asked = ask(file, 80, k % 2 == 0 ? "scale" : nullptr);
        if (asked.code == KSHIM_CODE_SASS) ++yes;
        if (asked.code == KSHIM_CODE_NONE) ++no;
        EXPECT_TRUE(asked.code != KSHIM_CODE_UNKNOWN || asked.reason == "changed") << asked.reason;
        EXPECT_NE(asked.code, KSHIM_CODE_JIT);
      }
    });
  for (std::thread& each : readers) each.join();
  stop = true;
  writer.join();
  EXPECT_NE(yes, 0U);
  EXPECT_NE(no, 0U);
}

/// One that is cut and written again in place: a mapping of it would have ended the process.
TEST_F(QueryDamage, OverwrittenWhileItIsAskedFor) {
  const Buffer whole = host_of({FatbinBuilder{}.cubin(arch_of(80), cubin_of(80, {"scale"}))});
  const std::string file = write("f.so", Bytes(whole));
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    while (!stop) {
      static_cast<void>(::truncate(file.c_str(), 100));
      write("f.so", Bytes(whole));
    }
  });
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i)
    readers.emplace_back([&] {
      for (int k = 0; k < 500; ++k) {
        const Asked asked = ask(file, 80, k % 2 == 0 ? "scale" : nullptr);
        EXPECT_TRUE(asked.code == KSHIM_CODE_SASS || asked.code == KSHIM_CODE_UNKNOWN) << asked.reason;
      }
    });
  for (std::thread& each : readers) each.join();
  stop = true;
  writer.join();
  EXPECT_EQ(ask(file, 80, "scale").code, KSHIM_CODE_SASS);
}

/// No descriptor is to be had: only what is known already can be answered.
Asked ask_without_descriptors(const std::string& file, unsigned number) {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{0, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &none);
  Asked out = ask(file, number);
  ::setrlimit(RLIMIT_NOFILE, &before);
  return out;
}

TEST_F(QueryDamage, AChangedFileIsReadAgain) {
  const auto write_for = [&](unsigned number) {
    const std::string file =
        write("f.fatbin", FatbinBuilder{}.cubin(arch_of(number), cubin_of(number, {"scale"})));
    const timespec times[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
    ::utimensat(AT_FDCWD, file.c_str(), times, 0);  // the same inode, size and modification time
    return file;
  };
  const std::string file = write_for(80);
  EXPECT_EQ(ask(file, 80).code, KSHIM_CODE_SASS);
  EXPECT_EQ(ask_without_descriptors(file, 80).reason, "cannot_open");  // too young to be kept
  settle();
  EXPECT_EQ(ask(file, 80).code, KSHIM_CODE_SASS);
  EXPECT_EQ(ask_without_descriptors(file, 80).code, KSHIM_CODE_SASS);
  EXPECT_EQ(ask_without_descriptors(file, 90).code, KSHIM_CODE_NONE);
  write_for(90);
  EXPECT_EQ(ask(file, 80).code, KSHIM_CODE_NONE);
  std::filesystem::remove(file);
  EXPECT_EQ(ask(file, 80).reason, "cannot_open");
}

}  // namespace
}  // namespace kshim::test
