// SPDX-License-Identifier: Apache-2.0
// Files that lie to find_device_code(): nothing crashes or hangs, what is wrong is named with its place in
// the file, and what is right is listed all the same.
#include <gmock/gmock.h>
#include <sys/mman.h>

#include <algorithm>

#include "device_code_fixture.h"

namespace kshim::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::size_t kElfHeader = 64;  // where the first section of the builder begins
constexpr std::size_t kEntry = 16;      // of the first entry in a fatbin
constexpr std::size_t kOneEntry = 64 + 8;

/// Every view lies in the file, every index exists.
void expect_sound(const DeviceCode& code, const Buffer& file) {
  for (const CodeImage& image : code.images) {
    EXPECT_LE(image.offset, file.size());
    if (image.payload.empty()) continue;
    EXPECT_GE(image.payload.data(), file.data());
    EXPECT_LE(image.payload.data() + image.payload.size(), file.data() + file.size());
  }
  for (const CodeModule& module : code.modules) {
    EXPECT_LE(std::uint64_t{module.first} + module.count, code.images.size());
    for (const std::uint32_t part : module.parts) EXPECT_LT(part, code.images.size());
  }
  for (const Damage& damage : code.damage) EXPECT_LE(damage.offset, file.size());
}

Buffer host_of(const Buffer& fatbins, const char* section = ".nv_fatbin") {
  auto elf = host_elf();
  elf.section(section, SHT_PROGBITS, fatbins, 0, 0, kLoaded, kFatbinAddress);
  return elf.build();
}

auto damage_at(std::uint64_t offset, const char* what) {
  return AllOf(Field("offset", &Damage::offset, offset), Field("what", &Damage::what, HasSubstr(what)));
}

constexpr std::uint64_t kWrapperOffset = kElfHeader + 88 + 88 + 88;

// As `truncate -s 1T x.fatbin` makes it.
TEST(HostileDeviceCode, AHoleBehindAFatbinIsNotWalkedToItsEnd) {
  constexpr std::size_t kGiB = std::size_t{1} << 30;
  const Buffer fatbin = one(90).build();
  // Pages that nobody writes to are one page of zeros.
  const std::size_t second = kGiB >> 8U;
  const std::size_t size = kGiB + 3 * second;
  void* const mapped =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  auto* const file = static_cast<std::byte*>(mapped);
  for (const std::size_t at : {std::size_t{0}, second, size - second})
    std::copy(fatbin.begin(), fatbin.end(), file + at);
  const DeviceCode code = find_device_code(Bytes(file, size));
  EXPECT_THAT(code.images, SizeIs(2)) << "some megabytes are padding";
  EXPECT_THAT(code.damage,
              ElementsAre(damage_at(second + fatbin.size() + kGiB, "1 GiB of zeros stand behind")));
  munmap(mapped, size);
}

TEST(HostileDeviceCode, CutOffAnywhereYieldsWhatIsWhole) {
  const Buffer whole = linked_program({kPartAddress, 0});
  ASSERT_EQ(labels(find_device_code(whole)), "sm_90 (compute_70) (compute_80)");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Buffer file(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    const DeviceCode code = find_device_code(file);
    expect_sound(code, file);
    if (size < 20) continue;  // too short to be called an ELF file
    EXPECT_THAT(code.damage, ::testing::Not(IsEmpty())) << size;
    // Without section headers the three fatbins are found by their magic.
    std::size_t there = 0;
    for (const std::size_t end : {1U, 2U, 3U}) there += size >= kElfHeader + end * 88 ? 1U : 0U;
    EXPECT_THAT(code.images, SizeIs(there)) << size;
  }
}

TEST(HostileDeviceCode, ABareCubinCutOffIsDamageInTheFile) {
  const Buffer whole = build_cubin({.arch = arch_of(90), .kernels = {{.name = "kernel"}}});
  for (std::size_t size = 20; size < whole.size(); ++size) {
    const Buffer file(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    const DeviceCode code = find_device_code(file);
    expect_sound(code, file);
    EXPECT_THAT(code.images, IsEmpty()) << size;
    EXPECT_THAT(code.damage, SizeIs(1)) << size;
  }
}

TEST(HostileDeviceCode, ADamagedFatbinDoesNotHideTheNext) {
  struct Case {
    const char* name;
    std::size_t at;
    std::uint64_t value;
    const char* what;
    std::size_t damage;
  };
  // The section holds sm_75 and sm_80 in one fatbin, sm_90 in the next; sm_80's entry is damaged.
  constexpr std::size_t kSecond = kEntry + kOneEntry;
  const Case cases[] = {
      {"payload near 2^64", kSecond + kEntryPayloadSize, UINT64_MAX - 63, "64 bits", kSecond + 8},
      {"payload of 2^64-1", kSecond + kEntryPayloadSize, UINT64_MAX, "64 bits", kSecond + 8},
      {"payload near 2^63", kSecond + kEntryPayloadSize, UINT64_MAX / 2, "ends before", kSecond},
      {"payload near 2^32", kSecond + kEntryPayloadSize, UINT32_MAX, "ends before", kSecond},
      {"payload a byte too long", kSecond + kEntryPayloadSize, 9, "ends before", kSecond},
      {"header near 2^32", kSecond + kEntryHeaderSize, UINT32_MAX, "ends before", kSecond},
      {"entries near 2^64", 8, UINT64_MAX - 15, "64 bits", 8},
  };
  for (const Case& each : cases) {
    Buffer fatbins;
    append_fatbin(fatbins, one(75).cubin(arch_of(80)));
    append_fatbin(fatbins, one(90));
    if (each.at == kSecond + kEntryHeaderSize) {
      put(fatbins, each.at, static_cast<std::uint32_t>(each.value));
    } else {
      put(fatbins, each.at, each.value);
    }
    const Buffer file = host_of(fatbins);
    const DeviceCode code = find_device_code(file);
    expect_sound(code, file);
    EXPECT_EQ(labels(code), each.at == 8 ? "sm_90" : "sm_75 sm_90") << each.name;
    ASSERT_THAT(code.damage, ::testing::Not(IsEmpty())) << each.name;
    EXPECT_THAT(code.damage[0], damage_at(kElfHeader + each.damage, each.what)) << each.name;
  }
}

TEST(HostileDeviceCode, AFatbinThatSwallowsItsNeighborsDoesNotHideThem) {
  for (const char* section : {".nv_fatbin", ".rodata"}) {
    Buffer fatbins;
    append_fatbin(fatbins, one(75));
    const auto second = append_fatbin(fatbins, one(80));
    append_fatbin(fatbins, one(90));
    put(fatbins, 8, std::uint64_t{fatbins.size() - 16});  // what follows the first entry is no entry
    const Buffer file = host_of(fatbins, section);
    const DeviceCode code = find_device_code(file);
    expect_sound(code, file);
    EXPECT_EQ(labels(code), "sm_75 sm_80 sm_90") << section;
    EXPECT_THAT(code.damage, ElementsAre(damage_at(kElfHeader + second + 2, "version"))) << section;
  }
}

TEST(HostileDeviceCode, AFatbinThatIsLongerThanItsSectionYieldsItsWholeEntries) {
  Buffer fatbins = one(75).cubin(arch_of(80)).build();
  put(fatbins, 8, std::uint64_t{1} << 40);
  for (const char* section : {".nv_fatbin", ".rodata"}) {
    const Buffer file = host_of(fatbins, section);
    const DeviceCode code = find_device_code(file);
    expect_sound(code, file);
    EXPECT_EQ(labels(code), "sm_75 sm_80") << section;
    EXPECT_THAT(code.damage, ElementsAre(damage_at(kElfHeader + fatbins.size(), "ends before"))) << section;
  }
}

TEST(HostileDeviceCode, AKindThatIsNotKnownIsSaidAndPassedOver) {
  Buffer fatbins = one(75).cubin(arch_of(80)).build();
  put(fatbins, kEntry, std::uint16_t{0x40});
  const Buffer file = host_of(fatbins);
  const DeviceCode code = find_device_code(file);
  EXPECT_EQ(labels(code), "sm_80");
  EXPECT_THAT(code.damage, ElementsAre(damage_at(kElfHeader + kEntry, "kind")));
}

TEST(HostileDeviceCode, BytesBetweenFatbinsAreDamage) {
  Buffer fatbins;
  append_fatbin(fatbins, one(75));
  const std::size_t at = fatbins.size();
  fatbins.resize(at + 4096, std::byte{0xaa});
  append_fatbin(fatbins, one(90));
  const Buffer file = host_of(fatbins);
  const DeviceCode code = find_device_code(file);
  EXPECT_EQ(labels(code), "sm_75 sm_90");
  EXPECT_THAT(code.damage, ElementsAre(damage_at(kElfHeader + at, "no fatbin")));
}

TEST(HostileDeviceCode, FatbinsNestedThousandfoldAreReadOnce) {
  // Each header claims everything behind it, and its first entry is the next header: no entry.
  Buffer fatbins(std::size_t{1} << 20);
  for (std::size_t at = 0; at + 16 <= fatbins.size(); at += 16) {
    put(fatbins, at, std::uint64_t{0x0010'0001'0000'0000} | image::kFatbinMagic);
    put(fatbins, at + 8, std::uint64_t{fatbins.size() - at - 16});
  }
  for (const char* section : {".nv_fatbin", ".rodata"}) {
    const Buffer file = host_of(fatbins, section);
    const DeviceCode code = find_device_code(file);
    expect_sound(code, file);
    EXPECT_THAT(code.images, IsEmpty());
    EXPECT_LE(code.damage.size(), 65U);  // a list that people read
  }
}

TEST(HostileDeviceCode, AWrapperThatPointsAtAWrapperLeadsNowhere) {
  for (const std::uint64_t target : {kWrapperAddress, std::uint64_t{0}, UINT64_MAX, UINT64_MAX - 7}) {
    const Buffer file = linked_program({kPartAddress, 0}, target);
    const DeviceCode code = find_device_code(file);
    expect_sound(code, file);
    EXPECT_EQ(labels(code), "sm_90 (compute_70) (compute_80)");
    EXPECT_THAT(code.modules.at(0).parts, IsEmpty());
    EXPECT_THAT(code.damage, ElementsAre(damage_at(kWrapperOffset, "points at no fatbin")));
  }
}

TEST(HostileDeviceCode, AListOfPartsEndsThoughItNeverSaysSo) {
  constexpr std::uint64_t kPart = kPartAddress;
  const Buffer endless = linked_program({kPart, kPart, kPart, kPart, kPart});
  EXPECT_EQ(labels(find_device_code(endless), find_device_code(endless).modules.at(0)), "sm_90 + compute_70");
  EXPECT_THAT(find_device_code(endless).damage,
              ElementsAre(damage_at(kWrapperOffset, "longer than there are parts")));

  const Buffer astray = linked_program({kPart, kListAddress, kPart + 88, 0});
  EXPECT_THAT(find_device_code(astray).damage, ElementsAre(damage_at(kWrapperOffset, "something else")));
}

TEST(HostileDeviceCode, RelocationsThatPointAtEachOtherEnd) {
  auto elf = host_elf();
  elf.section(".nv_fatbin", SHT_PROGBITS, one(90).build(), 0, 0, kLoaded, kFatbinAddress);
  elf.section("__nv_relfatbin", SHT_PROGBITS, FatbinBuilder{}.ptx(arch_of(70), {9, 0}).build(), 0, 0, kLoaded,
              kPartAddress);
  elf.section(".nvFatBinSegment", SHT_PROGBITS, wrapper(2, 0, 0), 0, 0, kLoaded, kWrapperAddress);
  Buffer relocations;
  append_relocation(relocations, kWrapperAddress + 8, R_X86_64_RELATIVE, 0, kFatbinAddress);
  // The list is the pointer to the list.
  append_relocation(relocations, kWrapperAddress + 16, R_X86_64_RELATIVE, 0, kWrapperAddress + 16);
  elf.section(".rela.dyn", SHT_RELA, relocations, 0, 0, kLoaded, 0x100);
  const Buffer file = elf.build();
  const DeviceCode code = find_device_code(file);
  EXPECT_EQ(labels(code), "sm_90 (compute_70)");
  EXPECT_THAT(code.damage, SizeIs(1));
}

TEST(HostileDeviceCode, SectionsBehindTheEndOfTheFileAreSaidAndTheRestIsListed) {
  auto elf = host_elf();
  elf.section(".rodata", SHT_PROGBITS, one(70).build(), 0, 0, kLoaded, 0x1000);
  elf.section(".nv_fatbin", SHT_PROGBITS, one(90).build(), 0, 0, kLoaded, kFatbinAddress);
  const Buffer whole = elf.build();
  const std::uint64_t table = *read_le<std::uint64_t>(whole, offsetof(Elf64_Ehdr, e_shoff));
  const std::size_t offset = table + sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_offset);
  const std::size_t size = table + sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_size);
  for (const auto& [at, value, labels] : {std::tuple{offset, UINT64_MAX, "sm_90"},
                                          {offset, UINT64_MAX - 87, "sm_90"},
                                          {offset, std::uint64_t{1} << 40, "sm_90"},
                                          {size, UINT64_MAX, "sm_70 sm_90"},
                                          {size, std::uint64_t{1} << 40, "sm_70 sm_90"}}) {
    Buffer file = whole;
    put(file, at, value);
    const DeviceCode code = find_device_code(file);
    expect_sound(code, file);
    EXPECT_EQ(test::labels(code), labels) << value;
    EXPECT_THAT(code.damage, ElementsAre(damage_at(file.size(), "section .rodata"))) << value;
  }
}

TEST(HostileDeviceCode, SectionsThatShareTheirBytesAreSearchedOnce) {
  constexpr std::uint16_t kSections = 60000;
  constexpr std::size_t kData = std::size_t{4} << 20;
  Buffer file(64);
  std::memcpy(file.data(),
              "\x7f"
              "ELF\x02\x01\x01",
              7);
  file.resize(file.size() + kData, std::byte{0x41});
  put(file, 18, std::uint16_t{EM_X86_64});
  put(file, 40, std::uint64_t{file.size()});
  put(file, 58, std::uint16_t{64});
  put(file, 60, kSections);
  put(file, 62, std::uint16_t{1});  // all are named by the data: one text of 4 MiB
  Buffer header(64);
  put(header, 4, std::uint32_t{SHT_PROGBITS});
  put(header, 8, std::uint64_t{SHF_ALLOC});
  put(header, 24, std::uint64_t{64});
  put(header, 32, std::uint64_t{kData});
  for (unsigned section = 0; section < kSections; ++section) append(file, Bytes(header));
  const DeviceCode code = find_device_code(file);
  EXPECT_LE(code.searched, kData);  // and not 240 GB
}

TEST(HostileDeviceCode, APeFileThatLiesIsRead) {
  const Buffer whole = build_pe(
      {{".nv_fatb", 0x40000040, one(70).build(), 0x1000}, {".rdata", 0x40000040, one(90).build(), 0x2000}});
  ASSERT_EQ(labels(find_device_code(whole)), "sm_70 sm_90");
  for (std::size_t size = 0; size < whole.size(); size += size < 512 ? 1 : 7) {
    const Buffer file(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    expect_sound(find_device_code(file), file);
  }
  for (std::size_t at = 0; at < 512; ++at) {
    for (const std::uint32_t value : {0U, 1U, 0x7fffffffU, 0x80000000U, 0xfffffff8U, UINT32_MAX}) {
      Buffer file = whole;
      put(file, at, value);
      expect_sound(find_device_code(file), file);
    }
  }
  Buffer file = whole;
  constexpr std::size_t kFirstSection = 0x80 + 24 + 240;
  put(file, kFirstSection + 20, 0xfffffff0U);
  EXPECT_EQ(labels(find_device_code(file)), "sm_90");
  EXPECT_THAT(find_device_code(file).damage, ElementsAre(damage_at(file.size(), "section .nv_fatb")));
  file = whole;
  put(file, 0x80 + 6, std::uint16_t{65535});
  EXPECT_EQ(labels(find_device_code(file)).find("sm_70"), 0U);
}

TEST(HostileDeviceCode, EveryHeaderFieldOfAHostMayHoldAnything) {
  const Buffer whole = linked_program({kPartAddress, 0});
  for (std::size_t at = 0; at + 8 <= whole.size(); at += 4) {
    for (const std::uint64_t value :
         {std::uint64_t{0}, std::uint64_t{UINT32_MAX}, UINT64_MAX, UINT64_MAX - 15,
          std::uint64_t{whole.size()}, std::uint64_t{whole.size() - 1}}) {
      Buffer file = whole;
      put(file, at, value);
      expect_sound(find_device_code(file), file);
    }
  }
}

}  // namespace
}  // namespace kshim::test
