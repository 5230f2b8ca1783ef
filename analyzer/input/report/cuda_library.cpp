// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/report/cuda_library.h"

#include <elf.h>

#include "analyzer/core/text.h"

namespace kshim::input {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kShared = ".so";
constexpr std::size_t kMaxLibraries = 512;
constexpr std::uint64_t kMaxSymbols = 1U << 20U;
constexpr std::uint64_t kMaxCode = 4096;

// auditwheel puts a hash into the name of what it copies into a wheel: libcudart-e409450e.so.11.0.
bool is_renamed(std::string_view family) {
  const std::size_t dash = family.rfind('-');
  return dash != std::string_view::npos && family.size() - dash > 8 &&
         std::ranges::all_of(family.substr(dash + 1), core::is_hex);
}

void set_name(CudaLibrary& out) {
  const std::string_view name = out.record.soname;
  const std::size_t mark = name.find(kShared);
  if (!name.starts_with("lib") || mark == std::string_view::npos) return;
  const std::string_view family = name.substr(3, mark - 3);
  if (is_renamed(family)) return;
  out.family = family;
  const std::string_view rest = name.substr(mark + kShared.size());
  if (rest.size() > 1) out.major = core::first_number<unsigned>(rest.substr(1)).value_or(out.major);
}

std::size_t places_of(std::string_view version) {
  return version.empty() ? 0 : 1 + static_cast<std::size_t>(std::count(version.begin(), version.end(), '.'));
}

void take_longer(std::string_view version, CudaLibrary& out) {
  const bool numbers = version.find_first_not_of("0123456789.") == std::string_view::npos;
  if (numbers && places_of(version) > places_of(out.version)) out.version = version;
}

void set_place(ObjectFiles& files, CudaLibrary& out) {
  const fs::path plain = fs::path(out.record.path).lexically_normal();
  out.path = plain.string();
  out.folder = plain.parent_path().string();
  out.real = files.real_path(out.path);
  if (out.real.empty()) return;
  out.folder = out.real.substr(0, std::max<std::size_t>(out.real.rfind('/'), 1));
  const std::string_view name = core::basename_of(out.real);
  if (const std::size_t mark = name.find(".so."); mark != std::string_view::npos)
    take_longer(name.substr(mark + 4), out);
}

// nvidia-cudnn-cu12 is of CUDA 12. Since CUDA 13 wheels of the toolkit have no such ending.
std::optional<unsigned> cuda_of_package(std::string_view name) {
  const std::size_t mark = name.rfind("-cu");
  const auto major =
      mark == std::string_view::npos ? std::nullopt : core::parse_number<unsigned>(name.substr(mark + 3));
  return major == 0U ? std::nullopt : major;
}

void set_package(ObjectFiles& files, CudaLibrary& out) {
  const auto package = files.packages().of(out.real.empty() ? out.record.path : out.real);
  if (!package || !package->project().is_nvidias()) return;
  out.package = package->project().normal();
  take_longer(package->version, out);
}

// cudnn_graph_version, cudnn_ops_infer_version ...: four bytes, 0x00091300 = 9.19.0.
std::string version_in_datum(const image::ElfReader& elf, const image::ElfSymbol& symbol) {
  const auto bytes = elf.at_address(symbol.value, sizeof(std::uint32_t));
  if (!bytes) return {};
  const auto value = read_le<std::uint32_t>(*bytes, 0);
  if (!value || (*value >> 24U) != 0 || (*value >> 16U) == 0) return {};
  return fmt::format("{}.{}.{}", *value >> 16U, (*value >> 8U) & 0xffU, *value & 0xffU);
}

// cudnnGetCudartVersion() ends by putting a number into eax: 13010. A number of that shape occurs once in it.
std::optional<unsigned> cuda_in_code(const image::ElfReader& elf, const image::ElfSymbol& symbol) {
  constexpr std::byte kMoveToEax{0xb8};
  if (elf.machine() != EM_X86_64 || symbol.size > kMaxCode) return std::nullopt;
  const auto code = elf.at_address(symbol.value, symbol.size);
  if (!code) return std::nullopt;
  std::optional<unsigned> out;
  for (std::size_t i = 0; i + 5 <= code->size(); ++i) {
    if ((*code)[i] != kMoveToEax) continue;
    const auto value = read_le<std::uint32_t>(*code, i + 1);
    if (!value || *value < 7000 || *value > 30000 || *value % 10 != 0) continue;
    const unsigned major = *value / 1000;
    if (out && *out != major) return std::nullopt;
    out = major;
  }
  return out;
}

void set_cudnn(CudaLibrary& out) {
  if (!out.family.starts_with("cudnn")) return;
  const CudnnFacts facts = read_cudnn(out.record.path, out.record.build_id);
  take_longer(facts.version, out);
  out.cuda = cuda_of_package(out.package);
  if (!out.cuda) out.cuda = facts.cuda;
}

}  // namespace

CudnnFacts read_cudnn(const std::string& path, std::string_view build_id) {
  const auto mapped = device_code::MappedFile::open(path);
  const auto* file = std::get_if<device_code::MappedFile>(&mapped);
  if (file == nullptr || (!build_id.empty() && device_code::build_id_of(path) != build_id)) return {};
  const auto elf = image::ElfReader::open(file->bytes());
  if (!elf) return {};
  CudnnFacts out;
  const auto table = elf->section(".dynsym");
  const std::uint64_t count = table ? std::min(elf->symbol_count(*table), kMaxSymbols) : 0;
  for (std::uint64_t i = 1; i < count; ++i) {
    const auto symbol = elf->symbol(*table, i);
    if (!symbol || symbol->section == SHN_UNDEF) continue;
    if (symbol->name.starts_with("cudnn_") && symbol->name.ends_with("_version") &&
        symbol->size == sizeof(std::uint32_t) && out.version.empty())
      out.version = version_in_datum(*elf, *symbol);
    if (symbol->name == "cudnnGetCudartVersion") out.cuda = cuda_in_code(*elf, *symbol);
  }
  return out;
}

std::vector<CudaLibrary> cuda_libraries(const Report& report, ObjectFiles& files) {
  std::vector<CudaLibrary> out;
  for (const LibraryRecord& record : report.libraries) {
    if (out.size() == kMaxLibraries) break;
    CudaLibrary library;
    library.record = record;
    set_name(library);
    if (library.family.empty()) continue;
    take_longer(record.version, library);
    set_place(files, library);
    set_package(files, library);
    set_cudnn(library);
    out.push_back(std::move(library));
  }
  return out;
}

bool releases_differ(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    const std::string_view x = a.substr(0, a.find('.'));
    const std::string_view y = b.substr(0, b.find('.'));
    if (x != y) return true;
    a.remove_prefix(std::min(a.size(), x.size() + 1));
    b.remove_prefix(std::min(b.size(), y.size() + 1));
  }
  return false;
}

bool releases_agree(std::string_view a, std::string_view b) {
  return std::min(places_of(a), places_of(b)) >= 3 && !releases_differ(a, b);
}

}  // namespace kshim::input
