// SPDX-License-Identifier: Apache-2.0
// Sources: DWARF 2 to 4, section 6.2 (line number information), which is what ptxas writes; PTX ISA 9.0,
// .file and .loc.
#include "analyzer/device_code/kernel_lines.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <vector>

#include "kshim/image/cubin.h"

namespace kshim::source {
namespace {

// A cubin of NCCL 2.28 has 600 kernels; 64 MB is a line table of several million rows.
constexpr std::size_t kMostKernels = 20'000;
constexpr std::size_t kLargestTable = std::size_t{64} << 20;
constexpr std::size_t kMostRelocations = 100'000;
constexpr std::size_t kMostFiles = 20'000;
constexpr std::size_t kLongestPath = 4096;

using Kernels = std::map<std::string, SourceLine>;
/// Where in .debug_line a kernel's address stands: the address itself is left to the loader.
using Sequences = std::map<std::uint64_t, std::string>;

/// Reads forward and fails for good at the end.
class Cursor {
 public:
  Cursor(Bytes bytes, std::uint64_t at, std::uint64_t end) : bytes_(bytes), at_(at), end_(end) {}
  bool ok() const { return ok_; }
  bool more() const { return ok_ && at_ < end_; }
  std::uint64_t at() const { return at_; }
  void skip(std::uint64_t size) {
    if (size > end_ - at_) ok_ = false;
    if (ok_) at_ += size;
  }
  template <class T>
  T number() {
    T out{};
    if (!ok_ || end_ - at_ < sizeof(T)) {
      ok_ = false;
      return out;
    }
    if (const auto got = read_le<T>(bytes_, at_)) out = *got;
    at_ += sizeof(T);
    return out;
  }
  std::uint64_t unsigned_leb() {
    std::uint64_t out = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = number<std::uint8_t>();
      if (!ok_) return 0;
      if (shift < 64) out |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
      if ((byte & 0x80U) == 0) return out;
    }
  }
  std::int64_t signed_leb() {
    std::uint64_t out = 0;
    for (unsigned shift = 0;;) {
      const auto byte = number<std::uint8_t>();
      if (!ok_) return 0;
      if (shift < 64) out |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
      shift += 7;
      if ((byte & 0x80U) != 0) continue;
      if (shift < 64 && (byte & 0x40U) != 0) out |= ~std::uint64_t{0} << shift;
      return static_cast<std::int64_t>(out);
    }
  }
  std::string_view text() {
    const std::string_view rest =
        text_of(bytes_).substr(static_cast<std::size_t>(at_), static_cast<std::size_t>(end_ - at_));
    const std::size_t end = ok_ ? rest.find('\0') : std::string_view::npos;
    if (end == std::string_view::npos) {
      ok_ = false;
      return {};
    }
    at_ += end + 1;
    return rest.substr(0, end);
  }

 private:
  Bytes bytes_;
  std::uint64_t at_;
  std::uint64_t end_;
  bool ok_ = true;
};

struct FileEntry {
  std::string_view name;
  std::uint64_t folder = 0;
};

/// One unit of .debug_line.
class LineUnit {
 public:
  LineUnit(Cursor cursor, const Sequences& sequences, Kernels& out)
      : cursor_(cursor), sequences_(sequences), out_(out) {}

  void run() {
    if (read_header()) read_program();
  }

 private:
  bool read_header() {
    constexpr unsigned kFirstVersion = 2;
    constexpr unsigned kLastVersion = 4;
    const unsigned version = cursor_.number<std::uint16_t>();
    if (version < kFirstVersion || version > kLastVersion) return false;
    const std::uint64_t length = cursor_.number<std::uint32_t>();
    const std::uint64_t program = cursor_.at() + length;
    cursor_.skip(1);                               // minimum_instruction_length
    if (version == kLastVersion) cursor_.skip(1);  // maximum_operations_per_instruction
    cursor_.skip(1);                               // default_is_stmt
    line_base_ = cursor_.number<std::int8_t>();
    line_range_ = cursor_.number<std::uint8_t>();
    const unsigned opcodes = cursor_.number<std::uint8_t>();
    for (unsigned opcode = 1; opcode < opcodes; ++opcode)
      arguments_.push_back(cursor_.number<std::uint8_t>());
    if (!cursor_.ok() || line_range_ == 0 || opcodes == 0) return false;
    read_files();
    if (!cursor_.ok() || program < cursor_.at()) return false;
    cursor_.skip(program - cursor_.at());
    return cursor_.ok();
  }

  void read_files() {
    for (auto name = cursor_.text(); !name.empty(); name = cursor_.text()) {
      if (folders_.size() < kMostFiles) folders_.push_back(name);
    }
    for (auto name = cursor_.text(); !name.empty(); name = cursor_.text()) {
      const std::uint64_t folder = cursor_.unsigned_leb();
      cursor_.unsigned_leb();  // time
      cursor_.unsigned_leb();  // size
      if (files_.size() < kMostFiles) files_.push_back({name, folder});
    }
  }

  std::string path(std::uint64_t file) const {
    if (file == 0 || file > files_.size()) return {};
    const FileEntry& entry = files_[file - 1];
    if (entry.name.size() > kLongestPath) return {};
    if (entry.name.starts_with('/') || entry.folder == 0 || entry.folder > folders_.size())
      return std::string(entry.name);
    const std::string_view folder = folders_[entry.folder - 1];
    if (folder.size() > kLongestPath) return {};
    return std::string(folder) + "/" + std::string(entry.name);
  }

  void row() {
    if (kernel_.empty()) return;
    if (line_ > 0 && line_ <= UINT32_MAX) {
      if (std::string file = path(file_); !file.empty())
        out_.try_emplace(kernel_, SourceLine{std::move(file), static_cast<unsigned>(line_)});
    }
    kernel_.clear();  // the first row is where the kernel begins
  }

  void extended() {
    constexpr unsigned kEndOfSequence = 1;
    constexpr unsigned kSetAddress = 2;
    const std::uint64_t length = cursor_.unsigned_leb();
    if (length == 0) return;
    const unsigned opcode = cursor_.number<std::uint8_t>();
    if (opcode == kEndOfSequence) {
      kernel_.clear();
      file_ = 1;
      line_ = 1;
    } else if (opcode == kSetAddress) {
      const auto found = sequences_.find(cursor_.at());
      kernel_ = found == sequences_.end() ? std::string() : found->second;
    }
    cursor_.skip(length - 1);
  }

  void read_program() {
    constexpr unsigned kCopy = 1;
    constexpr unsigned kAdvanceLine = 3;
    constexpr unsigned kSetFile = 4;
    constexpr unsigned kFixedAdvance = 9;
    while (cursor_.more()) {
      const unsigned opcode = cursor_.number<std::uint8_t>();
      if (opcode > arguments_.size()) {
        line_ += static_cast<std::uint64_t>(line_base_);
        line_ += (opcode - arguments_.size() - 1) % line_range_;
        row();
      } else if (opcode == 0) {
        extended();
      } else if (opcode == kCopy) {
        row();
      } else if (opcode == kAdvanceLine) {
        line_ += static_cast<std::uint64_t>(cursor_.signed_leb());
      } else if (opcode == kSetFile) {
        file_ = cursor_.unsigned_leb();
      } else if (opcode == kFixedAdvance) {
        cursor_.skip(2);
      } else {
        for (unsigned i = 0; i < arguments_[opcode - 1] && cursor_.ok(); ++i) cursor_.unsigned_leb();
      }
    }
  }

  Cursor cursor_;
  const Sequences& sequences_;
  Kernels& out_;
  std::int64_t line_base_ = 0;
  unsigned line_range_ = 0;
  std::vector<std::uint8_t> arguments_;  ///< of standard opcodes
  std::vector<std::string_view> folders_;
  std::vector<FileEntry> files_;
  std::string kernel_;  ///< whose first row is next
  std::uint64_t file_ = 1;
  std::uint64_t line_ = 1;  ///< wraps, where a made-up table adds without end
};

/// The relocations of .debug_line, of either kind, by the place they are for.
Sequences sequences_of(const image::ElfReader& elf, const image::ElfSection& lines) {
  constexpr std::uint32_t kRela = 4;
  constexpr std::uint32_t kRel = 9;
  Sequences out;
  std::size_t left = kMostRelocations;
  const auto symbols = elf.section(".symtab");
  if (!symbols) return out;
  for (std::uint32_t index = 1; index < elf.section_count(); ++index) {
    const auto table = elf.section_cut(index);
    if (!table || table->info != lines.index || (table->type != kRel && table->type != kRela)) continue;
    const std::uint64_t size = table->type == kRel ? 16 : 24;
    for (std::uint64_t at = 0; at + size <= table->bytes.size() && left != 0; at += size, --left) {
      const auto offset = read_le<std::uint64_t>(table->bytes, at);
      const auto info = read_le<std::uint64_t>(table->bytes, at + 8);
      if (!offset || !info) break;
      const auto symbol = elf.symbol(*symbols, *info >> 32U);
      if (symbol && !symbol->name.empty()) out.emplace(*offset, symbol->name);
    }
  }
  return out;
}

Kernels of_cubin(Bytes clear) {
  Kernels out;
  const auto cubin = image::CubinReader::open(clear);
  if (!cubin) return out;
  const auto lines = cubin->elf().section(".debug_line");
  if (!lines || lines->bytes.size() > kLargestTable) return out;
  const Sequences sequences = sequences_of(cubin->elf(), *lines);
  if (sequences.empty()) return out;
  for (std::uint64_t at = 0; at < lines->bytes.size();) {
    const auto length = read_le<std::uint32_t>(lines->bytes, at);
    constexpr std::uint32_t kLongFormat = 0xfffffff0;  // 64-bit DWARF: no cubin is so large
    if (!length || *length >= kLongFormat || *length > lines->bytes.size() - at - 4) break;
    LineUnit(Cursor(lines->bytes, at + 4, at + 4 + *length), sequences, out).run();
    at += 4 + std::uint64_t{*length};
  }
  return out;
}

/// The next word, and the text behind it.
std::string_view next_word(std::string_view& text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  const std::size_t end = std::min(text.find_first_of(" \t(,", begin), text.size());
  const std::string_view out = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return out;
}

bool parse(std::string_view word, unsigned& out) {
  const auto got = std::from_chars(word.data(), word.data() + word.size(), out);
  return got.ec == std::errc() && got.ptr == word.data() + word.size();
}

// `.loc FILE LINE COLUMN` inside an entry, `.file NUMBER "PATH"` anywhere, one directive a line as NVVM
// writes them.
Kernels of_ptx(std::string_view text) {
  std::map<std::string, std::pair<unsigned, unsigned>> places;
  std::map<unsigned, std::string> files;
  std::string kernel;
  if (text.find("\t.loc\t") == std::string_view::npos && text.find(".loc ") == std::string_view::npos)
    return {};
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    std::string_view word = next_word(line);
    while (word == ".visible" || word == ".weak" || word == ".extern") word = next_word(line);
    unsigned number = 0;
    unsigned row = 0;
    if (word == ".entry") {
      kernel = next_word(line);
    } else if (word == ".func") {
      kernel.clear();
    } else if (word == ".loc" && !kernel.empty() && places.size() < kMostKernels) {
      if (parse(next_word(line), number) && parse(next_word(line), row) && row != 0)
        places.try_emplace(kernel, number, row);
      kernel.clear();
    } else if (word == ".file" && files.size() < kMostFiles && parse(next_word(line), number)) {
      const std::size_t open = line.find('"');
      const std::size_t close = open == std::string_view::npos ? open : line.find('"', open + 1);
      if (close != std::string_view::npos && close - open - 1 <= kLongestPath)
        files.emplace(number, line.substr(open + 1, close - open - 1));
    }
  }
  Kernels out;
  for (const auto& [name, place] : places) {
    const auto file = files.find(place.first);
    if (file != files.end() && !file->second.empty())
      out.emplace(name, SourceLine{file->second, place.second});
  }
  return out;
}

}  // namespace

Kernels kernel_lines(image::ImageKind kind, Bytes clear) {
  switch (kind) {
    case image::ImageKind::cubin:
      return of_cubin(clear);
    case image::ImageKind::ptx:
      return of_ptx(text_of(clear));
    case image::ImageKind::ltoir:
    case image::ImageKind::tileir:
      break;
  }
  return {};
}

}  // namespace kshim::source
