// SPDX-License-Identifier: Apache-2.0
#include "track/device_code.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "cubin_builder.h"
#include "cuda/call_args.h"
#include "failure/gaps.h"
#include "fatbin_builder.h"
#include "kshim/base/hash.h"

namespace kshim::shim {
namespace {

using image::FatbinWrapper;
using kshim::test::arch_of;
using kshim::test::FatbinBuilder;

std::uintptr_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

std::vector<std::string> archs_of(const DeviceCode& code) {
  ArchList list;
  code.list(list);
  return {list.all().begin(), list.all().end()};
}

alignas(16) unsigned char g_fatbin[4096];  // in this program's own data, as .nv_fatbin is
FatbinWrapper g_wrapper{image::kWrapperMagic, 1, 0, 0};

image::Choice choice_for(const DeviceCode& code, image::ComputeCapability device) {
  image::Platform platform;
  platform.device = device;
  return code.selection_for(platform).choice;
}

TEST(DeviceCode, AFatbinInAFileIsKnownByFileAndOffset) {
  const auto bytes = FatbinBuilder()
                         .cubin(arch_of(75))
                         .cubin(arch_of(90, image::Suffix::a))
                         .ptx(arch_of(80), {8, 0})
                         .build();
  ASSERT_LE(bytes.size(), sizeof g_fatbin);
  std::memcpy(g_fatbin, bytes.data(), bytes.size());
  g_wrapper.fatbin = address_of(g_fatbin);
  DeviceCode code;
  examine_memory(address_of(&g_wrapper), LoadResult::loaded, code);
  EXPECT_TRUE(code.wrapped);
  EXPECT_EQ(code.address, address_of(g_fatbin));
  EXPECT_EQ(code.size, bytes.size());
  EXPECT_EQ(code.object, find_loaded_object(address_of(&g_wrapper)).identity);
  EXPECT_NE(code.object, 0U);
  EXPECT_EQ(code.offset, find_loaded_object(address_of(g_fatbin)).offset_of(address_of(g_fatbin)));
  EXPECT_EQ(code.hash, 0U);
  EXPECT_EQ(code.packaging, image::Packaging::fatbin);
  EXPECT_EQ(archs_of(code), (std::vector<std::string>{"sm_75", "sm_90a", "compute_80"}));
  EXPECT_EQ(choice_for(code, {7, 5}), image::Choice::sass);
  EXPECT_EQ(choice_for(code, {12, 0}), image::Choice::jit);
  EXPECT_EQ(choice_for(code, {6, 1}), image::Choice::none);
}

TEST(DeviceCode, RelocatablePartsCountAsWell) {
  // -rdc=true: the linked fatbin has SASS only, the PTX is in the parts.
  const auto linked = FatbinBuilder().cubin(arch_of(75)).build();
  const auto part = FatbinBuilder().cubin(arch_of(75)).ptx(arch_of(75), {8, 0}).build();
  const std::uintptr_t parts[] = {address_of(part.data()), 0};
  const FatbinWrapper wrapper{image::kWrapperMagic, 2, address_of(linked.data()), address_of(parts)};
  DeviceCode code;
  examine_memory(address_of(&wrapper), LoadResult::loaded, code);
  EXPECT_EQ(archs_of(code), (std::vector<std::string>{"sm_75", "compute_75"}));
  EXPECT_EQ(choice_for(code, {12, 0}), image::Choice::jit);
}

TEST(DeviceCode, ALooseBlobIsKnownByItsContent) {
  const auto bytes = FatbinBuilder().cubin(arch_of(86)).build();
  DeviceCode code;
  examine_memory(address_of(bytes.data()), LoadResult::loaded, code);
  EXPECT_EQ(code.object, 0U);
  EXPECT_EQ(code.size, bytes.size());
  EXPECT_EQ(code.hash, content_hash(std::as_bytes(std::span(bytes))));

  // Of a large one only samples are read, until its record is written.
  auto large =
      FatbinBuilder().cubin(arch_of(86), kshim::test::Buffer(4 * kHashedInFull, std::byte{7})).build();
  DeviceCode succeeded, failed;
  examine_memory(address_of(large.data()), LoadResult::loaded, succeeded);
  examine_memory(address_of(large.data()), LoadResult::failed, failed);
  EXPECT_NE(succeeded.hash, 0U);
  EXPECT_EQ(succeeded.hash, failed.hash);
  EXPECT_EQ(succeeded.key(), failed.key());
  hash_in_full(failed);
  EXPECT_EQ(failed.hash, content_hash(std::as_bytes(std::span(large))));
}

TEST(DeviceCode, TwoImagesInOneBufferAreTwo) {
  static char g_buffer[65536];  // of this file, and written to
  std::uint64_t keys[3] = {};
  for (unsigned i = 0; i < 3; ++i) {
    auto bytes =
        FatbinBuilder()
            .cubin(arch_of(i == 2 ? 75 : 75 + i * 5), kshim::test::Buffer(2 * kHashedInFull, std::byte{7}))
            .build();
    std::memcpy(g_buffer, bytes.data(), bytes.size());
    DeviceCode code;
    examine_memory(address_of(g_buffer), LoadResult::loaded, code);
    EXPECT_NE(code.object, 0U);
    keys[i] = code.key();
  }
  EXPECT_NE(keys[0], keys[1]);
  EXPECT_EQ(keys[0], keys[2]);
}

TEST(DeviceCode, PtxTextEndsWithItsNul) {
  const std::string text = "// a comment\n.version 8.3\n.target sm_90a\n.address_size 64\n";
  DeviceCode code;
  examine_memory(address_of(text.c_str()), LoadResult::failed, code);
  EXPECT_EQ(code.size, text.size());
  EXPECT_EQ(archs_of(code), std::vector<std::string>{"compute_90a"});
  EXPECT_EQ(code.images[0].isa, (image::Version{8, 3}));
  EXPECT_EQ(code.packaging, image::Packaging::loose);
}

TEST(DeviceCode, WhatCannotBeReadIsNotRead) {
  for (const std::uintptr_t address : {std::uintptr_t{0}, std::uintptr_t{16}, ~std::uintptr_t{0} - 8}) {
    DeviceCode code;
    examine_memory(address, LoadResult::failed, code);
    EXPECT_EQ(code.image_count, 0);
    EXPECT_EQ(code.size, 0U);
  }
  // A fatbin whose header promises more than is mapped.
  const auto kPage = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  auto* pages = static_cast<std::byte*>(
      mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(pages, MAP_FAILED);
  ASSERT_EQ(mprotect(pages + kPage, kPage, PROT_NONE), 0);
  auto bytes = FatbinBuilder().cubin(arch_of(75)).build();
  bytes[8] = std::byte{0xff};
  bytes[9] = std::byte{0xff};
  std::byte* start = pages + kPage - bytes.size();
  std::memcpy(start, bytes.data(), bytes.size());
  DeviceCode code;
  examine_memory(address_of(start), LoadResult::failed, code);
  EXPECT_EQ(code.image_count, 0);
  munmap(pages, 2 * kPage);
}

TEST(DeviceCode, AFileIsAnObjectOfItsOwn) {
  const auto bytes = FatbinBuilder().cubin(arch_of(75)).build();
  const std::string path = testing::TempDir() + "kshim_device_code.fatbin";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  DeviceCode code;
  examine_file(path.c_str(), LoadResult::loaded, code);
  EXPECT_EQ(file_of_identity(code.object).path, path);
  EXPECT_EQ(code.size, bytes.size());
  EXPECT_EQ(archs_of(code), std::vector<std::string>{"sm_75"});
  DeviceCode missing;
  examine_file("/nonexistent/x.cubin", LoadResult::loaded, missing);
  EXPECT_EQ(file_of_identity(missing.object).path, "/nonexistent/x.cubin");
  EXPECT_EQ(missing.image_count, 0);
}

TEST(DeviceCode, ACubinFileThatHasLoadedIsTheCommandsToRead) {
  for (const LoadResult result : {LoadResult::loaded, LoadResult::failed}) {
    SCOPED_TRACE(static_cast<int>(result));
    const auto bytes = kshim::test::build_cubin({.arch = arch_of(90)});
    const std::string path = testing::TempDir() + "kshim_device_code.cubin";
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    DeviceCode code, memory;
    examine_file(path.c_str(), result, code);
    examine_memory(address_of(bytes.data()), result, memory);
    EXPECT_EQ(code.size, bytes.size());
    EXPECT_EQ(archs_of(memory).size(), 1U);
    const bool read = result == LoadResult::failed;
    EXPECT_EQ(archs_of(code), read ? archs_of(memory) : std::vector<std::string>());
    EXPECT_EQ(code.toolkit, read ? memory.toolkit : image::Version());
  }
}

TEST(DeviceCode, WhatTheDriverDidNotLookAtIsNotRead) {
  for (const int code : {3, 4, 201, 709}) EXPECT_EQ(load_result(code), LoadResult::refused);
  for (const int code : {200, 209, 2}) EXPECT_EQ(load_result(code), LoadResult::failed);
  const auto bytes = kshim::test::build_cubin({.arch = arch_of(90)});
  DeviceCode memory;
  examine_memory(address_of(bytes.data()), LoadResult::refused, memory);
  EXPECT_EQ(memory.address, address_of(bytes.data()));
  EXPECT_EQ(memory.size + memory.hash, 0U);
  // A process that opens a file and closes it loses its locks on that file.
  const std::string path = testing::TempDir() + "kshim_device_code_locked.cubin";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  const int file = open(path.c_str(), O_RDWR);
  struct flock lock {};
  lock.l_type = F_WRLCK;
  ASSERT_EQ(fcntl(file, F_SETLK, &lock), 0);
  DeviceCode named;
  examine_file(path.c_str(), LoadResult::refused, named);
  EXPECT_EQ(file_of_identity(named.object).path, path);
  const pid_t child = fork();
  if (child == 0) {
    fcntl(file, F_GETLK, &lock);
    _exit(lock.l_type == F_WRLCK ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  close(file);
}

TEST(DeviceCode, AFileThatIsCutMeanwhileCostsAnAnswer) {
  // An entry a page, so that what is looked at lies on pages that come and go.
  FatbinBuilder builder;
  for (unsigned arch = 70; arch < 90; ++arch)
    builder.cubin(arch_of(arch), kshim::test::Buffer(4096, std::byte{7}));
  const auto bytes = builder.build();
  const std::string path = testing::TempDir() + "kshim_device_code_cut.fatbin";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  DeviceCode whole;
  examine_file(path.c_str(), LoadResult::loaded, whole);
  EXPECT_EQ(whole.image_count, 20);
  std::atomic<bool> stop{false};
  std::thread cutter([&] {
    constexpr std::size_t kLeft = 4096;
    const int file = open(path.c_str(), O_RDWR);
    while (!stop.load()) {
      std::this_thread::sleep_for(std::chrono::microseconds(10));
      if (ftruncate(file, kLeft) != 0 || pwrite(file, bytes.data() + kLeft, bytes.size() - kLeft, kLeft) < 0)
        break;
    }
    close(file);
  });
  for (int i = 0; i < 3000; ++i) {
    DeviceCode code;
    examine_file(path.c_str(), LoadResult::loaded, code);
  }
  stop.store(true);
  cutter.join();
}

}  // namespace
}  // namespace kshim::shim
