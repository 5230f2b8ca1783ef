// SPDX-License-Identifier: Apache-2.0
// Reads a report line by line. A report comes from a process that may have died while writing, or from a
// stranger: nothing in it can make the reader fail in another way than by saying what is wrong.
//
// Memory: what is kept of one report (record_parser.h), one line, and simdjson's work on that line (about 14
// bytes for each of the longest), whatever the size of the file.
#pragma once
#include <bit>
#include <filesystem>
#include <functional>
#include <memory>
#include <variant>

#include "analyzer/input/report/report.h"

namespace kshim::input {

/// A longer line is skipped with a note: no record of the shim is longer than 512 KiB.
constexpr std::size_t kMaxLineLength = std::size_t{4} << 20;

/// Of a report written with KSHIM_PRIVATE: its owner's analysis has the home folder, what is made to be kept
/// or shared has `~`.
enum class HomePaths : bool { own, hidden };

/// Whether a report need not be read: of it there is the process record, and the text of all that comes
/// after.
using IsKnown = std::function<bool(const Report& report, std::string_view lines)>;

/// The report, or one sentence without the path saying why it is none. `read` is told the bytes read so far,
/// now and then. `is_known` is asked once, of a report that is not large and whose process record is as a
/// shim writes it; where the answer is yes, that record is all that the report has.
std::variant<Report, std::string> read_report(const std::filesystem::path& path,
                                              const std::function<void(std::uint64_t bytes)>& read = {},
                                              HomePaths homes = HomePaths::own, const IsKnown& is_known = {});

/// "r.jsonl:7"; the path alone, where the note is about the whole.
std::string place_of(const Report& report, const ReportNote& note);

/// Collects bytes and hands out lines. Behind the bytes there is always `padding` more that may be read:
/// simdjson looks beyond a line's end.
class LineBuffer {
 public:
  explicit LineBuffer(std::size_t padding) : padding_(padding) {}

  /// Room for one more chunk, without which it grows.
  char* room(std::size_t chunk) {
    if (used_ + chunk > size_) {
      const std::size_t size = used_ == 0 ? std::bit_ceil(chunk) : 2 * size_ + chunk;
      // Zeroed, so that nobody reads what was never written.
      auto bytes = std::make_unique<char[]>(size + padding_);
      if (used_ != 0) std::memcpy(bytes.get(), bytes_.get(), used_);
      bytes_ = std::move(bytes);
      size_ = size;
    }
    return bytes_.get() + used_;
  }
  void filled(std::size_t count) { used_ += count; }
  /// Calls `visit(std::string_view line)` for every whole line; stops at an answer that is not empty and
  /// returns it.
  template <class Visit>
  std::string drain(Visit&& visit) {
    std::size_t begin = 0;
    while (const void* newline = std::memchr(bytes_.get() + searched_, '\n', used_ - searched_)) {
      const auto end = static_cast<std::size_t>(static_cast<const char*>(newline) - bytes_.get());
      if (std::string why = visit(std::string_view(bytes_.get() + begin, end - begin)); !why.empty())
        return why;
      begin = searched_ = end + 1;
    }
    if (begin != 0) std::memmove(bytes_.get(), bytes_.get() + begin, used_ - begin);
    used_ -= begin;
    searched_ = used_;
    return {};
  }
  std::string_view rest() const { return {bytes_.get(), used_}; }
  std::size_t size() const { return size_; }
  void drop() { used_ = searched_ = 0; }

 private:
  std::size_t padding_;
  std::unique_ptr<char[]> bytes_;
  std::size_t size_ = 0;
  std::size_t used_ = 0;
  std::size_t searched_ = 0;  ///< so far there is no newline
};

/// What a file that is no report is, by its first bytes, as a clause with what to do: "is compressed with
/// gzip: ...". Empty where nothing is known about it.
std::string foreign_file(std::string_view first_bytes);

}  // namespace kshim::input
