// SPDX-License-Identifier: Apache-2.0
// The readers on real files, for toolkit_test.py and for people. One line an image:
//   image_probe list FILE...       section, fatbin's offset, kind, architecture, PTX ISA, compression,
//   payload bytes image_probe kernels FILE...    the same, and below it "  kernel NAME registers=R shared=S
//   parameters=N/BYTES max_threads=T",
//                                  "  variable NAME size=B" of each image, decompressed
//   image_probe judge              reads "IMAGE DEVICE DRIVER" lines (compute_80@7.0 8.6 13.0), writes "yes
//   RULE" or "no RULE"
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "kshim/image/cubin.h"
#include "kshim/image/decompress.h"
#include "kshim/image/fatbin.h"
#include "kshim/image/ptx.h"
#include "kshim/image/select.h"

namespace {

using namespace kshim;
using namespace kshim::image;

int status = 0;
void complain(const std::string& what, Error error) {
  std::fprintf(stderr, "%s %s, at %llu\n", what.c_str(), describe(error.code),
               static_cast<unsigned long long>(error.offset));
  status = 1;
}

std::string number(std::uint32_t value) {
  return value == KernelInfo::kUnknown ? "?" : std::to_string(value);
}

void print_kernel(const KernelInfo& kernel) {
  std::printf("  kernel %.*s registers=%s shared=%s parameters=%u/%s max_threads=%s\n",
              static_cast<int>(kernel.name.size()), kernel.name.data(), number(kernel.registers).c_str(),
              number(kernel.shared_bytes).c_str(), kernel.parameter_count,
              number(kernel.parameter_bytes).c_str(), number(kernel.max_threads).c_str());
}
void print_global(const GlobalInfo& global) {
  std::printf("  variable %.*s size=%llu\n", static_cast<int>(global.name.size()), global.name.data(),
              static_cast<unsigned long long>(global.size));
}

void print_cubin(Bytes bytes, const std::string& what) {
  const auto cubin = CubinReader::open(bytes);
  if (!cubin) return complain(what, cubin.error());
  const auto kernels =
      cubin->each_kernel([](const KernelInfo& kernel) { return print_kernel(kernel), true; });
  if (!kernels) complain(what, kernels.error());
  const auto globals =
      cubin->each_global([](const GlobalInfo& global) { return print_global(global), true; });
  if (!globals) complain(what, globals.error());
}

void print_ptx(Bytes bytes, const std::string& what) {
  const auto ptx = PtxReader::open(bytes);
  if (!ptx) return complain(what, ptx.error());
  std::uint64_t cursor = 0;
  for (;;) {
    const auto kernel = ptx->next_kernel(cursor);
    if (!kernel) break;
    print_kernel(*kernel);
  }
  cursor = 0;
  for (;;) {
    const auto global = ptx->next_global(cursor);
    if (!global) break;
    print_global(*global);
  }
}

const char* name_of(Compression compression) {
  switch (compression) {
    case Compression::none:
      return "stored";
    case Compression::lz4:
      return "lz4";
    case Compression::zstd:
      return "zstd";
    case Compression::unknown:
      break;
  }
  return "unknown";
}

void print_entry(const Image& entry, const std::string& where, bool kernels) {
  std::printf("%s %s %s %s %s %llu\n", where.c_str(), std::string(to_name(entry.kind)).c_str(),
              to_name(entry.kind, entry.arch).c_str(), to_name(entry.isa).c_str(), name_of(entry.compression),
              static_cast<unsigned long long>(entry.payload.size()));
  if (!kernels || entry.kind == ImageKind::ltoir) return;
  std::vector<std::byte> payload;
  const auto size = decompress(entry, payload);
  if (!size) return complain(where, size.error());
  entry.kind == ImageKind::cubin ? print_cubin(payload, where) : print_ptx(payload, where);
}

/// Fatbins stand on multiples of 8 with zeros between them.
void print_fatbins(Bytes bytes, const std::string& section, bool kernels) {
  std::uint64_t at = 0;
  while (at + 16 <= bytes.size()) {
    const auto opened = FatbinReader::open(bytes.subspan(static_cast<std::size_t>(at)));
    if (!opened) {
      if (read_le<std::uint64_t>(bytes, at).value_or(0) != 0)
        return complain(section + " " + std::to_string(at), opened.error());
      at += 8;
      continue;
    }
    FatbinReader reader = *opened;
    const std::string where = section + " " + std::to_string(at);
    for (;;) {
      const auto entry = reader.next();
      if (entry) {
        print_entry(*entry, where, kernels);
        continue;
      }
      if (entry.error().code == Errc::not_found) break;
      complain(where, entry.error());
    }
    at = (at + reader.size() + 7) & ~std::uint64_t{7};
  }
}

void print_file(const char* path, bool kernels) {
  std::ifstream file(path, std::ios::binary);
  const std::string content(std::istreambuf_iterator<char>(file), {});
  const Bytes bytes = bytes_of(content);
  const std::string name = path;
  switch (identify(bytes)) {
    case BlobKind::fatbin:
      return print_fatbins(bytes, "-", kernels);
    case BlobKind::cubin: {
      const auto cubin = CubinReader::open(bytes);
      if (!cubin) return complain(name, cubin.error());
      std::printf("- 0 cubin %s 0.0 stored %zu\n", to_name(ImageKind::cubin, cubin->arch()).c_str(),
                  bytes.size());
      if (kernels) print_cubin(bytes, name);
      return;
    }
    case BlobKind::ptx: {
      const auto ptx = PtxReader::open(bytes);
      if (!ptx) return complain(name, ptx.error());
      std::printf("- 0 ptx %s %s stored %zu\n", to_name(ImageKind::ptx, ptx->target()).c_str(),
                  to_name(ptx->isa()).c_str(), bytes.size());
      if (kernels) print_ptx(bytes, name);
      return;
    }
    case BlobKind::host_elf: {
      const auto elf = ElfReader::open(bytes);
      if (!elf) return complain(name, elf.error());
      for (const char* section : {".nv_fatbin", "__nv_relfatbin"})
        if (const auto found = elf->section(section)) print_fatbins(found->bytes, section, kernels);
      return;
    }
    default:
      return complain(name, Error{Errc::unknown_kind});
  }
}

void print_judgments() {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string image, device, driver;
    words >> image >> device >> driver;
    const std::size_t at = image.find('@');
    const auto arch = parse_arch(image.substr(0, at));
    const auto cc = parse_arch(device);
    if (!arch || !cc) return complain(line, Error{Errc::malformed_text});
    Candidate candidate{image.starts_with("compute_") ? ImageKind::ptx : ImageKind::cubin, *arch, {}};
    if (at != std::string::npos) candidate.isa = parse_version(image.substr(at + 1)).value_or({});
    const Verdict verdict = judge(candidate, {cc->cc, parse_version(driver).value_or({}), {}});
    std::printf("%s %s\n", verdict.fits ? "yes" : "no", rule_text(verdict.rule).name);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "judge" && argc == 2) {
    print_judgments();
  } else if ((command == "list" || command == "kernels") && argc > 2) {
    for (int at = 2; at < argc; ++at) print_file(argv[at], command == "kernels");
  } else {
    std::fprintf(stderr, "usage: image_probe list|kernels FILE... | judge\n");
    return 2;
  }
  return status;
}
