// SPDX-License-Identifier: Apache-2.0
// write_seeds FOLDER: the seed corpus of every target, in FOLDER/fatbin, FOLDER/elf, FOLDER/ptx,
// FOLDER/select, FOLDER/device_code, FOLDER/archive and FOLDER/container.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include "container_seeds.h"
#include "cubin_builder.h"
#include "fatbin_builder.h"
#include "packed_payload.h"
#include "tests/support/command_names.h"
#include "tests/unit/analyzer/device_code_fixture.h"
#include "tests/unit/source/line_fixture.h"

namespace {

using namespace kshim;
using namespace kshim::image;
using namespace kshim::test;

constexpr const char* kPtx = R"(//
// a comment in front
.version 8.7
.target sm_120a, debug
.address_size 64
.visible .global .align 4 .b8 table[16] = {1, 2, 3, 4};
.extern .global .u32 elsewhere;
.const .align 8 .b8 factors[24];
.global .attribute(.managed) .align 4 .u32 both;
.func helper(.param .b32 a) { ret; }
.visible .entry first(
  .param .u64 .ptr .global .align 1 first_param_0,
  .param .align 8 .b8 first_param_1[24]
)
.maxntid 128, 2, 1
{
  .shared .align 4 .b8 tile[128];
  /* a brace } in a comment */
  .pragma "nounroll {";
  ret;
}
.entry second() { { .shared .f64 deep[4]; } ret; }
.visible .entry declared_only(.param .u32 x);
)";

class Corpus {
 public:
  /// Empties the folders: a fuzzer may have added to them.
  explicit Corpus(std::filesystem::path root) : root_(std::move(root)) {
    std::error_code error;
    for (const char* target :
         {"fatbin", "elf", "ptx", "select", "device_code", "archive", "container", "report"})
      std::filesystem::remove_all(root_ / target, error);
  }
  void add(const char* target, const std::string& name, const Buffer& bytes) {
    const auto folder = root_ / target;
    std::filesystem::create_directories(folder);
    std::ofstream file(folder / name, std::ios::binary);
    const std::string_view text = text_of(bytes);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    good_ = good_ && file.good();
  }
  bool good() const { return good_; }

 private:
  std::filesystem::path root_;
  bool good_ = true;
};

Buffer sample_cubin(unsigned number, Suffix suffix, std::uint8_t abi_version) {
  CubinSpec spec{.arch = arch_of(number, suffix), .abi_version = abi_version};
  spec.kernels = {{.name = "_Z5firstPid",
                   .registers = 32,
                   .shared_bytes = 1152,
                   .max_threads = 256,
                   .parameters = {{0, 8}, {8, 8}}},
                  {.name = "second", .frame_bytes = 64, .parameters = {{0, 4096}}, .wide_parameters = true}};
  spec.globals = {{.name = "counter"},
                  {.name = "both", .managed = true},
                  {.name = "table", .size = 16, .constant = true, .initial = Buffer(16)}};
  spec.device_function = "helper";
  spec.command_line = "-arch " + std::string(to_name(ImageKind::cubin, spec.arch).view()) + " -m 64";
  spec.arch_specific_record = suffix == Suffix::a;
  return build_cubin(spec);
}

EntrySpec packed_entry(ImageKind kind, Arch arch, Compression compression, const Buffer& plain) {
  return {.kind = kind,
          .arch = arch,
          .isa = {8, 7},
          .payload = pack(compression, plain),
          .compression = compression,
          .uncompressed_size = plain.size()};
}

void add_fatbins(Corpus& corpus) {
  const Buffer cubin = sample_cubin(90, Suffix::a, 8);
  const Buffer text = to_buffer(kPtx);
  const Arch arch = arch_of(120, Suffix::f);
  corpus.add("fatbin", "empty", FatbinBuilder{}.build());
  corpus.add("fatbin", "stored",
             FatbinBuilder{}.cubin(arch_of(75), cubin).ptx(arch_of(75), {9, 0}, kPtx).build());
  corpus.add("fatbin", "ltoir", FatbinBuilder{}.ltoir(arch_of(90)).build());
  for (const auto compression : {Compression::lz4, Compression::zstd}) {
    const std::string name = compression == Compression::lz4 ? "lz4" : "zstd";
    FatbinBuilder fatbin;
    fatbin.add(packed_entry(ImageKind::ptx, arch, compression, text));
    fatbin.add(packed_entry(ImageKind::cubin, arch_of(90, Suffix::a), compression, cubin));
    corpus.add("fatbin", name, fatbin.build());
  }
  EntrySpec long_header{.arch = arch_of(100), .payload = cubin, .header_size = 128};
  Buffer unknown = FatbinBuilder{}.add(long_header).cubin(arch_of(100)).build();
  corpus.add("fatbin", "long_header", unknown);
  put(unknown, kFatbinHeader + kEntryKind, std::uint16_t{0x40});
  corpus.add("fatbin", "unknown_kind", unknown);
}

void add_elf_files(Corpus& corpus) {
  for (const std::uint8_t abi_version : {std::uint8_t{7}, std::uint8_t{8}}) {
    const std::string name = "abi" + std::to_string(abi_version);
    corpus.add("elf", name, sample_cubin(90, Suffix::a, abi_version));
    corpus.add("elf", name + "_family", sample_cubin(120, Suffix::f, abi_version));
  }
  ElfBuilder host;
  host.machine = 62;
  host.os_abi = 0;
  Buffer note;
  for (const std::uint32_t word : {4U, 8U, 3U}) append(note, word);
  append(note, std::string_view("GNU\0abcdefgh", 12));
  host.section(".note.gnu.build-id", 7, note, 0, 0, 2, 0x1000);
  host.section(".nv_fatbin", 1, FatbinBuilder{}.cubin(arch_of(80)).build(), 0, 0, 2, 0x2000);
  host.section(".bss", ElfBuilder::kNoBits, {}, 4096, 0, 2, 0x3000);
  corpus.add("elf", "host", host.build());
}

void add_device_code(Corpus& corpus) {
  corpus.add("device_code", "linked", linked_program({kPartAddress, kPartAddress + 88, 0}));
  corpus.add("device_code", "list_loops", linked_program({kPartAddress, kPartAddress, kPartAddress}));
  Buffer object = linked_program({0});
  put(object, offsetof(Elf64_Ehdr, e_type), std::uint16_t{ET_REL});
  corpus.add("device_code", "object", object);
  Buffer fatbins;
  append_fatbin(fatbins, FatbinBuilder{}.cubin(arch_of(75)).ltoir(arch_of(80)));
  append_fatbin(fatbins, FatbinBuilder{}.ptx(arch_of(90, Suffix::a), {9, 0}));
  corpus.add("device_code", "bare", fatbins);
  Buffer wrapped = wrapper(1, 0x1000, 0);
  append(wrapped, Bytes(fatbins));
  corpus.add("device_code", "wrapper", wrapped);
  constexpr std::uint64_t kBase = 0x180000000;
  corpus.add("device_code", "pe",
             build_pe({{".nv_fatb", 0x40000040, fatbins, 0x4000},
                       {".nvFatBi", 0x40000040, wrapper(2, kBase + 0x4000, kBase + 0x6000), 0x5000},
                       {"__nv_rel", 0x40000040, fatbins, 0x6000},
                       {".rdata", 0x40000040, fatbins, 0x7000}}));
  auto elf = host_elf();
  elf.section(".rodata", SHT_PROGBITS, fatbins, 0, 0, kLoaded, 0x1000);
  Buffer relocations;
  append_relocation(relocations, kWrapperAddress + 8, R_X86_64_RELATIVE, 0, kFatbinAddress);
  append_relocation(relocations, kWrapperAddress + 16, R_X86_64_64, 1, 0);
  elf.section(".rela.dyn", SHT_RELA, relocations, 0, 0, kLoaded, 0x100);
  elf.section(".nv_fatbin", SHT_PROGBITS, fatbins, 0, 0, kLoaded, kFatbinAddress);
  elf.section(".nvFatBinSegment", SHT_PROGBITS, wrapper(2, 0, 0), 0, 0, kLoaded, kWrapperAddress);
  corpus.add("device_code", "relocated", elf.build());
  corpus.add("device_code", "cubin", sample_cubin(90, Suffix::a, 8));
  corpus.add("device_code", "ptx", to_buffer(kPtx));
}

void add_choices(Corpus& corpus) {
  const auto add = [&corpus](const char* name, std::uint16_t device, std::uint16_t switches,
                             std::initializer_list<std::uint32_t> candidates) {
    Buffer bytes;
    append(bytes, device);
    append(bytes, std::uint16_t{130});  // driver 13.0
    append(bytes, switches);
    for (const std::uint32_t candidate : candidates) append(bytes, candidate);
    corpus.add("select", name, bytes);
  };
  // kind + 3 * suffix, SM number - 10, unused, PTX ISA as a two-digit number
  add("sass", 89, 0, {0x00004601, 0x00004c01, 0x5a004600});
  add("jit", 121, 0, {0x00005001, 0x5a005000, 0x55004600});
  add("none", 61, 0, {0x00004101, 0x5a004100});
  add("forced", 90, 1, {0x00005001});
  add("disabled", 121, 2, {0x5a005000});
  add("no_compiler", 121, 16, {0x5a005000, 0x00005002});
  add("suffixes", 103, 0, {0x00005a07, 0x00005a04, 0x00005a01, 0x5a005d03});
  for (const char* text : {"sm_90a", "compute_120f", "lto_75", "12.1", "9.0a", "13.0"})
    corpus.add("select", std::string("name_") + text, to_buffer(text));
}

void add_attribution(Corpus& corpus) {
  const auto add = [&corpus](const char* name, std::uint8_t choice, Bytes bytes) {
    Buffer seed;
    append(seed, choice);
    append(seed, bytes);
    corpus.add("attribution", name, seed);
  };
  LineTable table;
  const Buffer lines = table.build();
  for (const bool addends : {false, true})
    add(addends ? "rela" : "rel", 1, cubin_with(lines, table.places, {"_Z1av", "_Z1bv"}, addends));
  add("ptx", 2, bytes_of(".entry a()\n\t.loc\t1 4 0\n\t.file\t1 \"/src/a.cu\"\n"));
}

// The reports of tests/golden, one by one and as one input of several.
void add_reports(Corpus& corpus) {
  Buffer together;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(KSHIM_GOLDEN)) {
    if (entry.path().extension() != ".jsonl") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const std::filesystem::path name = entry.path().lexically_relative(KSHIM_GOLDEN);
    corpus.add("report", name.parent_path().filename().string() + "_" + name.filename().string(),
               to_buffer(text));
    if (name.string().starts_with("ranks")) append(together, std::string_view(text));
  }
  corpus.add("report", "ranks", together);
}

void add_logs(Corpus& corpus) {
  const auto add = [&corpus](const char* name, const char* text) {
    corpus.add("log", name, to_buffer(text));
  };
  add("torch",
      "PyTorch version: 2.9.1+cu128\nNVIDIA GeForce MX330, compute capability 6.1\nTraceback (most recent "
      "call last):\n"
      "  File \"/home/u/train.py\", line 9, in main\nRuntimeError: CUDA error: no kernel image is available "
      "for execution on the device\n");
  add("lists",
      "libx.so:\nELF file    1: x.1.sm_89.cubin\nPTX file    1: x.1.sm_120.ptx\nDriver Version: 535.288.01   "
      "CUDA Version: 12.2\nCUDA error 209\n");
  add("compilers",
      "ptxas fatal   : Value 'sm_120' is not defined for option 'gpu-name'\nUnsupported .version 8.8; "
      "current version is '8.2'\n");
  add("numbers", "Check failed: error == cudaSuccess (48 vs. 0)\n[222] Call to cuLinkAddData\n");
  add("colors", "\x1b[31mCUDA error\x1b[0m: device kernel image is invalid\x1b]0;x\x07\n");
  add("number", "8");
  add("name", "cudaErrorNoKernelImageAvailable");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_seeds FOLDER\n");
    return 2;
  }
  Corpus corpus(argv[1]);
  add_fatbins(corpus);
  add_elf_files(corpus);
  corpus.add("ptx", "all_directives", to_buffer(kPtx));
  corpus.add("ptx", "smallest", to_buffer(".version 9.0 .target sm_75"));
  add_device_code(corpus);
  add_choices(corpus);
  add_attribution(corpus);
  add_reports(corpus);
  add_logs(corpus);
  for (const auto& seed : fuzz::container_seeds()) corpus.add(seed.target, seed.name, to_buffer(seed.bytes));
  if (corpus.good()) return 0;
  std::fprintf(stderr, "%s: cannot be written\n", argv[1]);
  return 1;
}
