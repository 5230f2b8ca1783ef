// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/files/file_kind.h"

#include <zlib.h>

#include "analyzer/core/text.h"
#include "analyzer/input/files/container.h"
#include "kshim/image/image.h"

namespace kshim::input {
namespace {

using namespace std::string_view_literals;

struct Magic {
  std::size_t at = 0;
  std::string_view bytes;
};

// Sound, pictures, fonts, documents, tensors, bytecode, catalogs, tables of systems, what version control
// keeps.
constexpr Magic kPlain[] = {
    {0, "\x89PNG\r\n\x1a\n"sv},
    {0, "\xff\xd8\xff"sv},  // JPEG
    {0, "GIF8"sv},
    {0, "RIFF"sv},  // WebP, WAV, AVI
    {0, "II*\0"sv},
    {0, "MM\0*"sv},
    {0, "\0\0\1\0"sv},  // icons
    {0, "8BPS"sv},
    {0, "\0\0\0\x0cjP  "sv},
    {0, "OggS"sv},
    {0, "fLaC"sv},
    {0, "ID3"sv},
    {4, "ftyp"sv},
    {0, "\x1a\x45\xdf\xa3"sv},  // Matroska
    {0, "OTTO"sv},
    {0, "\0\1\0\0\0"sv},  // TrueType
    {0, "ttcf"sv},
    {0, "wOFF"sv},
    {0, "wOF2"sv},
    {0, "%PDF-"sv},
    {0, "\xde\x12\x04\x95"sv},
    {0, "\x95\x04\x12\xde"sv},  // translations
    {0, "TZif"sv},
    {0, "\0asm"sv},
    {0, "GGUF"sv},
    {0, "PACK\0\0\0\2"sv},
    {0, "\xfftOc"sv},
    {0, "DIRC\0\0\0"sv},
    {0, "JM\1\0"sv},
    {0, "\xda\xda\xfe\xca"sv},
    {0, "\xa2\xab\x0b\xf0"sv},  // Java's modules, image and archive of classes
    {2, "\xda\x27"sv},          // ICU
    {0, "\x1c\4\x1e\xf1"sv},    // file's
    {0, "PPU"sv},
    {0, "Caml1999"sv},
    {0, "\1\xfa\xce\x64"sv},  // units of Pascal, OCaml, Haskell
    {0, "rust\0\0\0"sv},
    {0, "\x1bLua"sv},
    {0, "FOR1"sv},
    {0, "GOBJ\nMETADATA"sv},
    {0, "GVariant"sv},
    {0, "qres"sv},
    {0, "\x3c\xb8\x64\x18"sv},  // Qt's translations
};

// Names that say enough of a member of an archive: with a hundred thousand of them, reading what each begins
// with is the cost.
constexpr std::string_view kPlainEndings[] = {
    ".py",  ".pyc",  ".pyi", ".h",          ".hpp", ".hxx", ".cuh", ".c",   ".cc",  ".cpp", ".inl",  ".go",
    ".rs",  ".java", ".kt",  ".class",      ".sig", ".res", ".js",  ".ts",  ".css", ".htm", ".html", ".md",
    ".rst", ".xml",  ".xsd", ".properties", ".svg", ".png", ".jpg", ".gif", ".ttf", ".ko",
};

// Others that people know by a name.
struct Known {
  Magic magic;
  const char* name;
  DataKind::Contents contents = DataKind::Contents::packed;
};
constexpr Known kKnown[] = {
    {{0, "BC\xc0\xde"sv}, "LLVM bitcode"},
    {{0, "\xde\xc0\x17\x0b"sv}, "LLVM bitcode"},
    {{0, "SQLite format 3\0"sv}, "SQLite database"},
    {{0, "\x89HDF\r\n\x1a\n"sv}, "HDF5 file"},
    {{0, "PAR1"sv}, "Parquet file"},
    {{0, "7z\xbc\xaf\x27\x1c"sv}, "7z archive"},
    {{0, "Rar!\x1a\x07"sv}, "RAR archive"},
    {{0, "MSCF"sv}, "cabinet archive"},
    {{0, "\xed\xab\xee\xdb"sv}, "RPM package"},
    {{0, "070701"sv}, "cpio archive"},
    {{0, "hsqs"sv}, "SquashFS image"},
    {{0, "\x04\x22\x4d\x18"sv}, "LZ4 stream"},
    {{0, "\x1f\x9d"sv}, "compress stream"},
    {{0, "\x93NUMPY"sv}, "NumPy array", DataKind::Contents::open},
    {{0, "\xcf\xfa\xed\xfe"sv}, "Mach-O file", DataKind::Contents::open},
    {{0, "\xca\xfe\xba\xbe"sv}, "Mach-O file", DataKind::Contents::open},
};

bool has(Bytes first, const Magic& magic) {
  const std::string_view text = text_of(first);
  return text.size() >= magic.at && text.substr(magic.at).starts_with(magic.bytes);
}

}  // namespace

std::string_view unpacked_name(std::string_view name) noexcept {
  for (const std::string_view ending : {".gz"sv, ".bz2"sv, ".xz"sv, ".zst"sv, ".lzma"sv})
    if (name.size() > ending.size() && name.ends_with(ending))
      return name.substr(0, name.size() - ending.size());
  return name;
}

namespace {

/// A number of the compiler, then CR LF.
bool is_python_bytecode(Bytes first) {
  return first.size() >= 16 && text_of(first).substr(2, 2) == "\r\n" && first[1] <= std::byte{0x0f};
}

/// Its version is 45 or more. Mach-O files of several architectures count them in its place.
bool is_java_class(Bytes first) {
  return text_of(first).starts_with("\xca\xfe\xba\xbe") && first.size() > 7 && first[7] >= std::byte{45};
}

/// A magic, then sizes of at most a few hundred.
bool is_terminal(Bytes first) {
  const bool magic = text_of(first).starts_with("\x1a\1") || text_of(first).starts_with("\x1e\2");
  return magic && first.size() > 5 && first[3] == std::byte{0} && first[5] == std::byte{0};
}

/// The size of a JSON header, then the header.
bool is_safetensors(Bytes first) {
  const auto size = read_le<std::uint64_t>(first, 0);
  return size && *size < 100'000'000 && first.size() > 9 && text_of(first).substr(8, 2) == "{\"";
}

/// What the beginning of a stream of zlib's or gzip's format holds; nullopt where it is none.
std::optional<std::vector<std::byte>> beginning_of(Bytes packed) {
  std::vector<std::byte> out(kFirstBytes);
  z_stream stream{};
  constexpr int kEither = 32;  // beside the largest window
  if (::inflateInit2(&stream, MAX_WBITS + kEither) != Z_OK) return std::nullopt;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));  // NOLINT: only read
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = ::inflate(&stream, Z_SYNC_FLUSH);
  ::inflateEnd(&stream);
  out.erase(out.end() - static_cast<std::ptrdiff_t>(stream.avail_out), out.end());
  const bool good = result == Z_STREAM_END || ((result == Z_OK || result == Z_BUF_ERROR) && !out.empty());
  return good ? std::optional(std::move(out)) : std::nullopt;
}

/// A single file that cannot hold device code, compressed. What version control keeps, nothing loads.
bool is_packed_plain(Bytes first) {
  const bool zlib = text_of(first).starts_with("\x78");
  if (!zlib && !text_of(first).starts_with("\x1f\x8b")) return false;
  const auto inner = beginning_of(first);
  if (!inner) return false;
  const std::string_view text = text_of(Bytes(*inner));
  if (zlib && (text.starts_with("blob ") || text.starts_with("tree ") || text.starts_with("commit ") ||
               text.starts_with("tag ")))
    return true;
  return !may_hold_code(file_kind(*inner, {}, UINT64_MAX));
}

bool is_wide(Bytes first) {
  return text_of(first).starts_with("\xff\xfe"sv) || text_of(first).starts_with("\xfe\xff"sv);
}

/// No text has a NUL, and few have control characters but those for lines, pages and colors.
bool is_text(Bytes first) {
  constexpr std::size_t kBeginning = 512;
  constexpr std::ptrdiff_t kOneOf = 64;
  if (std::memchr(first.data(), 0, first.size()) != nullptr) return false;
  const std::string_view text = text_of(first).substr(0, kBeginning);
  return std::ranges::count_if(text, [](unsigned char c) {
           return c < ' ' && (c < '\t' || c > '\r') && c != 0x1b;
         }) <= std::ssize(text) / kOneOf;
}

/// PyTorch's tensors, each by its number.
bool is_tensor(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  return slash != std::string_view::npos && slash + 1 < name.size() &&
         name.substr(0, slash).ends_with("/data") &&
         std::ranges::all_of(name.substr(slash + 1), core::is_digit);
}

}  // namespace

FileKind file_kind(Bytes first, std::string_view name, std::uint64_t size) noexcept {
  if (first.empty()) return FileKind::text;
  const Bytes unmarked = text_of(first).starts_with("\xef\xbb\xbf"sv) ? first.subspan(3) : first;
  switch (image::identify(unmarked)) {
    case image::BlobKind::ltoir:
      // LLVM's own form names no architecture.
      if (text_of(first).starts_with("BC\xc0\xde"sv)) return FileKind::data;
      return FileKind::device_code;
    case image::BlobKind::fatbin:
    case image::BlobKind::fatbin_wrapper:
    case image::BlobKind::cubin:
    case image::BlobKind::ptx:
    case image::BlobKind::host_elf:
      return FileKind::device_code;
    default:
      break;
  }
  if (text_of(first).starts_with("MZ")) return FileKind::device_code;
  if (is_packed_plain(first)) return FileKind::plain;
  if (container_kind(first, name) != ContainerKind::none) return FileKind::container;
  if (is_wide(first)) return FileKind::text;
  // A PTX file whose comments alone fill the first bytes.
  if (name.ends_with(".ptx")) return FileKind::device_code;
  constexpr std::uint64_t kLargestScript = 1U << 20;  // a larger one extracts itself
  if (is_text(first))
    return text_of(first).starts_with("#!") && size > kLargestScript ? FileKind::data : FileKind::text;
  constexpr std::uint64_t kSmallest = 80;  // a fatbin's header and that of an image
  if (size < kSmallest) return FileKind::plain;
  if (is_python_bytecode(first) || is_java_class(first) || is_terminal(first) || is_safetensors(first))
    return FileKind::plain;
  return std::ranges::any_of(kPlain, [&](const Magic& magic) { return has(first, magic); }) ? FileKind::plain
                                                                                            : FileKind::data;
}

bool has_plain_name(std::string_view name) noexcept {
  const std::string_view plain = unpacked_name(name);
  const bool manual = plain.size() != name.size() && plain.find("/man/") != std::string_view::npos;
  return manual || is_tensor(plain) ||
         std::ranges::any_of(kPlainEndings, [&](std::string_view ending) { return plain.ends_with(ending); });
}

DataKind data_kind(Bytes first, std::string_view name) {
  for (const Known& known : kKnown)
    if (has(first, known.magic)) return {known.name, known.contents};
  const std::string_view file = core::basename_of(name.substr(name.rfind('!') + 1));
  const std::size_t dot = file.rfind('.');
  constexpr std::size_t kLongest = 16;
  const std::string_view ending =
      dot == std::string_view::npos || dot == 0 || file.size() - dot > kLongest ? "" : file.substr(dot);
  if (ending.empty()) return {"file without an ending"};
  return {fmt::format("{} file", ending)};
}

}  // namespace kshim::input
