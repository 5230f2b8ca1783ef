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

// Sound, pictures, fonts, documents, tensors and what version control keeps.
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
};

// Others that people know by a name.
struct Known {
  Magic magic;
  const char* name;
  bool searchable = false;
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
    {{0, "\x93NUMPY"sv}, "NumPy array", true},
    {{0, "\xcf\xfa\xed\xfe"sv}, "Mach-O file", true},
    {{0, "\xca\xfe\xba\xbe"sv}, "Mach-O or Java file", true},
};

bool has(Bytes first, const Magic& magic) {
  const std::string_view text = text_of(first);
  return text.size() >= magic.at && text.substr(magic.at).starts_with(magic.bytes);
}

/// A number of the compiler, then CR LF.
bool is_python_bytecode(Bytes first) {
  return first.size() >= 16 && text_of(first).substr(2, 2) == "\r\n" && first[1] <= std::byte{0x0f};
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
  return file_kind(*inner, {}, inner->size()) == FileKind::plain;
}

bool is_wide(Bytes first) {
  return text_of(first).starts_with("\xff\xfe"sv) || text_of(first).starts_with("\xfe\xff"sv);
}

/// No text has a NUL, and few have control characters but those for lines, pages and colors.
bool is_text(Bytes first) {
  constexpr std::ptrdiff_t kOneOf = 64;
  const std::string_view text = text_of(first);
  if (text.find('\0') != std::string_view::npos) return false;
  return std::ranges::count_if(text, [](unsigned char c) {
           return c < ' ' && (c < '\t' || c > '\r') && c != 0x1b;
         }) <= std::ssize(text) / kOneOf;
}

}  // namespace

FileKind file_kind(Bytes first, std::string_view name, std::uint64_t size) noexcept {
  if (first.empty()) return FileKind::plain;
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
  if (is_wide(first)) {
    // PTX that PowerShell wrote; other texts of 16 bits are texts.
    return text_of(first).find(".\0v\0e\0r\0s\0i\0o\0n\0"sv) != std::string_view::npos ? FileKind::data
                                                                                       : FileKind::plain;
  }
  // A PTX file whose comments alone fill the first bytes.
  if (name.ends_with(".ptx")) return FileKind::device_code;
  constexpr std::uint64_t kLargestScript = 1U << 20;  // a larger one extracts itself
  if (is_text(first))
    return text_of(first).starts_with("#!") && size > kLargestScript ? FileKind::data : FileKind::plain;
  if (is_python_bytecode(first) || is_safetensors(first)) return FileKind::plain;
  return std::ranges::any_of(kPlain, [&](const Magic& magic) { return has(first, magic); }) ? FileKind::plain
                                                                                            : FileKind::data;
}

DataKind data_kind(Bytes first, std::string_view name) {
  for (const Known& known : kKnown)
    if (has(first, known.magic)) return {known.name, known.searchable};
  const std::string_view file = basename_of(name.substr(name.rfind('!') + 1));
  const std::size_t dot = file.rfind('.');
  constexpr std::size_t kLongest = 16;
  const std::string_view ending =
      dot == std::string_view::npos || dot == 0 || file.size() - dot > kLongest ? "" : file.substr(dot);
  if (ending.empty()) return {"file without an ending"};
  return {fmt::format("{} file", ending)};
}

}  // namespace kshim::input
