// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/report/report_reader.h"

#include <fcntl.h>
#include <simdjson.h>
#include <sys/stat.h>
#include <unistd.h>

#include <limits>

#include "analyzer/core/memory_limit.h"
#include "analyzer/core/text.h"
#include "analyzer/input/report/record_parser.h"
#include "kshim/report/libc_calls.h"
#include "kshim/report/schema.h"
#include "kshim/report/trusted_folder.h"

namespace kshim::input {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 20;
// Kinds of oddities that are told apart.
constexpr std::size_t kNotesKept = 16;
constexpr std::string_view kNoReport =
    "is not a kshim report (no `process` record first); `kshim explain --log FILE` reads a log";

/// What the first line says about the file; empty when it is a report that we read.
std::string judge_schema(std::string_view schema) {
  if (schema == report::kReportSchema) return {};
  constexpr std::string_view kFamily = "kshim-report/";
  if (!schema.starts_with(kFamily)) return std::string(kNoReport);
  return fmt::format(
      "is of schema {}, this kshim reads {}: use the kshim that belongs to the shim that wrote it",
      schema.substr(0, 40), report::kReportSchema);
}

/// JSON may write a surrogate that has no other half (RFC 8259, 8.2), which is no text in UTF-8.
std::string whole_escapes(std::string_view text) {
  constexpr std::size_t kEscape = 6;  // \\uXXXX
  const auto half = [&](std::size_t at) {
    if (text.size() - at < kEscape || text[at] != '\\' || text[at + 1] != 'u') return 0U;
    return core::parse_number<unsigned>(text.substr(at + 2, kEscape - 2), 16).value_or(0);
  };
  const auto is_high = [](unsigned value) { return value >= 0xd800 && value < 0xdc00; };
  const auto is_low = [](unsigned value) { return value >= 0xdc00 && value < 0xe000; };
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '\\' || at + 1 == text.size()) {
      out += text[at++];
      continue;
    }
    const unsigned value = half(at);
    const bool pair = is_high(value) && at + kEscape < text.size() && is_low(half(at + kEscape));
    const std::size_t size = pair ? 2 * kEscape : value != 0 ? kEscape : 2;
    const bool alone = !pair && (is_high(value) || is_low(value));
    out += alone ? std::string_view("\\ufffd") : text.substr(at, size);
    at += size;
  }
  return out;
}

/// Notes about lines: each kind once, at its first line, with how often.
class LineNotes {
 public:
  void add(std::string text, std::uint32_t line) {
    const auto known = std::ranges::find_if(rows_, [&](const Row& row) { return row.note.text == text; });
    if (known != rows_.end()) {
      ++known->count;
    } else if (rows_.size() < kNotesKept) {
      rows_.push_back({{line, std::move(text)}, 1});
    } else {
      ++others_;
    }
  }
  bool any() const { return !rows_.empty(); }
  std::vector<ReportNote> take() {
    std::vector<ReportNote> out;
    for (Row& row : rows_) {
      if (row.count > 1) row.note.text += fmt::format(" ({} more lines like this)", row.count - 1);
      out.push_back(std::move(row.note));
    }
    if (others_ != 0) out.push_back({0, fmt::format("{} more lines are odd in other ways", others_)});
    return out;
  }

 private:
  struct Row {
    ReportNote note;
    std::uint64_t count = 0;
  };
  std::vector<Row> rows_;
  std::uint64_t others_ = 0;
};

class LineReader {
 public:
  LineReader(Report& report, bool expands_home, simdjson::dom::parser& parser)
      : report_(report), records_(report, expands_home), parser_(parser) {}

  /// An empty string, or why the file is no report. Behind `text` there is room for simdjson to read.
  std::string line(std::string_view text, bool complete) {
    next();
    // A crash of the machine leaves holes, before which and behind which there is text.
    if (!text.empty() && text.front() == '\0') {
      notes_.add("holds NUL bytes, as a crash of the machine leaves them", number_);
      text.remove_prefix(std::min(text.find_first_not_of('\0'), text.size()));
    }
    if (number_ == 1 && text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) return {};
    simdjson::dom::element element;
    auto error = parser_.parse(text.data(), text.size(), false).get(element);
    const auto parse_repaired = [&](std::string repaired, const char* note) {
      notes_.add(note, number_);
      repaired_ = std::move(repaired);
      repaired_.reserve(repaired_.size() + simdjson::SIMDJSON_PADDING);
      return parser_.parse(repaired_.data(), repaired_.size(), false).get(element);
    };
    if (error == simdjson::UTF8_ERROR)
      error = parse_repaired(core::utf8_of(text), "is not UTF-8 in places, which were replaced");
    if (error == simdjson::STRING_ERROR)
      error = parse_repaired(whole_escapes(text), "has escapes of half a character, which were replaced");
    simdjson::dom::object object;
    if (error == simdjson::MEMALLOC) throw std::bad_alloc();
    if (error != simdjson::SUCCESS) return broken(why_not_json(error), complete);
    if (element.get(object) != simdjson::SUCCESS) return broken("not a JSON object", complete);
    if (!seen_process_) {
      std::string_view schema;
      std::string_view type;
      if (object["type"].get(type) != simdjson::SUCCESS || type != "process" ||
          object["schema"].get(schema) != simdjson::SUCCESS) {
        return judge_schema({});
      }
      if (std::string why = judge_schema(schema); !why.empty()) return why;
      seen_process_ = true;
    }
    if (std::string odd = records_.parse(object, number_); !odd.empty()) notes_.add(std::move(odd), number_);
    return {};
  }
  void too_long() {
    next();
    ++skipped_;
    notes_.add(fmt::format("longer than {} MiB, skipped", kMaxLineLength >> 20), number_);
  }
  /// Of the process record alone: whether it is as a shim writes it.
  bool begins_well() const { return number_ == 1 && seen_process_ && !notes_.any(); }
  std::string finish() {
    if (!seen_process_) return number_ == 0 ? "is empty" : judge_schema({});
    report_.notes = notes_.take();
    // A torn line is one that no call had waited for: nothing that happened is lost with it.
    report_.missing = skipped_ - (torn_ ? 1 : 0);
    records_.finish(skipped_);
    return {};
  }

 private:
  void next() {
    if (number_ != std::numeric_limits<std::uint32_t>::max()) ++number_;
  }

  static std::string why_not_json(simdjson::error_code error) {
    switch (error) {
      case simdjson::DEPTH_ERROR:
        return "not valid JSON: nested too deeply";
      case simdjson::NUMBER_ERROR:
        return "not valid JSON: a number that is none, or larger than can be";
      case simdjson::UNESCAPED_CHARS:
        return "not valid JSON: a control character in a text";
      default:
        return "not valid JSON";
    }
  }
  std::string broken(const std::string& why, bool complete) {
    if (!seen_process_) return std::string(kNoReport);
    ++skipped_;
    torn_ = !complete;
    notes_.add(complete ? "skipped, " + why
                        : std::string("the last line is torn: the process died while writing it"),
               number_);
    return {};
  }

  Report& report_;
  RecordParser records_;
  LineNotes notes_;
  simdjson::dom::parser& parser_;
  std::string repaired_;
  std::uint32_t number_ = 0;
  std::uint64_t skipped_ = 0;
  bool seen_process_ = false;
  bool torn_ = false;  ///< the last line
};

/// What reading needs, kept from one report of a thread to the next: most are smaller than the time that it
/// takes to allocate it.
struct Workspace {
  LineBuffer buffer{simdjson::SIMDJSON_PADDING};
  simdjson::dom::parser parser{kMaxLineLength + kChunk};
};

/// The folder that a thread has read a report of lately, so that the way to it is walked once for all in it.
struct Folder {
  std::string path;
  files::Descriptor fd;
};

std::string read_lines(const files::OpenFile& file, LineBuffer& buffer, LineReader& reader,
                       const std::function<void(std::uint64_t)>& read,
                       const std::function<bool(std::string_view)>& is_known) {
  const int fd = file.fd.get();
  // The buffer is zeroed, which takes longer than reading a small report.
  const auto size = static_cast<std::size_t>(std::max<off_t>(file.status.st_size, 0));
  const std::size_t chunk = size == 0 ? kChunk : std::min(size + 1, is_known ? kMaxLineLength : kChunk);
  std::uint64_t done = 0;
  bool skipping = false;
  bool known = false;
  for (;;) {
    // Holes of a sparse file, within a line that is not read anyway, may be larger than any disk.
    if (skipping && ::lseek(fd, ::lseek(fd, 0, SEEK_CUR), SEEK_DATA) < 0 && errno == ENXIO) break;
    const ssize_t got = ::read(fd, buffer.room(chunk), chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fmt::format("cannot be read: {}", std::generic_category().message(errno));
    if (got == 0) break;
    buffer.filled(static_cast<std::size_t>(got));
    if (done == 0) {
      if (std::string what = foreign_file(buffer.rest()); !what.empty()) return what;
    }
    done += static_cast<std::uint64_t>(got);
    std::string why = buffer.drain([&](std::string_view text) -> std::string {
      if (skipping || text.size() > kMaxLineLength) {
        skipping = false;
        reader.too_long();
        return {};
      }
      std::string no_report = reader.line(text, true);
      if (is_known && no_report.empty() && done == size && reader.begins_well()) {
        const std::string_view all = buffer.rest();
        known = is_known(all.substr(static_cast<std::size_t>(text.data() + text.size() + 1 - all.data())));
        if (known) return "is known";
      }
      return no_report;
    });
    if (known) return {};
    if (!why.empty()) return why;
    if (buffer.rest().size() > kMaxLineLength) {
      skipping = true;
      buffer.drop();
    }
    if (read) read(done);
    if (size != 0 && done >= size && static_cast<std::size_t>(got) < chunk) break;
  }
  if (skipping) {
    reader.too_long();
  } else if (!buffer.rest().empty()) {
    if (std::string why = reader.line(buffer.rest(), false); !why.empty()) return why;
  }
  return reader.finish();
}

files::Descriptor walked(std::string_view to, bool any_kind) {
  int fd = -1;
  report::FolderWalk<report::LibcCalls>::open(to, {.any_kind = any_kind}, fd);
  return files::Descriptor(fd);
}

/// `linked`: the path leads to the file by a link of another user, who chose the file, and may choose another
/// one meanwhile.
files::OpenFile open_report(const std::filesystem::path& path, Folder& folder, bool& linked) {
  const std::string_view text = path.native();
  const std::size_t slash = std::min(text.rfind('/'), text.size());
  const std::string_view parent =
      slash == text.size() ? "." : text.substr(0, std::max<std::size_t>(slash, 1));
  const std::string_view name = slash == text.size() ? text : text.substr(slash + 1);
  if (!folder.fd || folder.path != parent) folder = {std::string(parent), walked(parent, false)};
  if (files::OpenFile file = files::open_to_read(path, folder.fd.get(), name.data()); file) return file;
  files::OpenFile file = files::open_to_read(path);
  const files::Descriptor entry = walked(text, true);
  struct stat there {};
  linked = !entry || ::fstat(entry.get(), &there) != 0 || there.st_dev != file.status.st_dev ||
           there.st_ino != file.status.st_ino;
  return file;
}

using namespace std::string_view_literals;

struct Magic {
  std::string_view bytes;
  std::string_view what;
};
// RFC 1952, RFC 8878, the formats of xz, bzip2, lz4, PKZIP; byte order marks.
constexpr Magic kMagics[] = {
    {"\x1f\x8b"sv, "is compressed with gzip: unpack it first (gunzip)"},
    {"\x28\xb5\x2f\xfd"sv, "is compressed with zstd: unpack it first (unzstd)"},
    {"\xfd"
     "7zXZ\0"sv,
     "is compressed with xz: unpack it first (unxz)"},
    {"BZh"sv, "is compressed with bzip2: unpack it first (bunzip2)"},
    {"\x04\x22\x4d\x18"sv, "is compressed with lz4: unpack it first (unlz4)"},
    {"PK\x03\x04"sv, "is a zip archive: unpack it, and name the folder"},
    {"\xff\xfe"sv, "is text in UTF-16: a report is UTF-8; convert it (iconv -f UTF-16 -t UTF-8)"},
    {"\xfe\xff"sv, "is text in UTF-16: a report is UTF-8; convert it (iconv -f UTF-16 -t UTF-8)"},
    {"\x7f"
     "ELF"sv,
     "is a program or library: `kshim scan` reads those"},
};

}  // namespace

std::variant<Report, std::string> read_report(const std::filesystem::path& path,
                                              const std::function<void(std::uint64_t)>& read, HomePaths homes,
                                              const IsKnown& is_known) {
  Report report;
  thread_local Folder folder;
  const files::OpenFile file = open_report(path, folder, report.linked);
  if (!file) return file.why;
  report.owner = file.status.st_uid;
  report.foreign = report.linked || report::is_another_user(file.status.st_uid, ::geteuid());
  report.path = path.string();
  thread_local std::optional<Workspace> workspace;
  if (!workspace || workspace->buffer.size() > 2 * kMaxLineLength) workspace.emplace();
  workspace->buffer.drop();
  try {
    LineReader reader(report, homes == HomePaths::own && !report.foreign, workspace->parser);
    std::function<bool(std::string_view)> asked;
    if (is_known) asked = [&](std::string_view lines) { return is_known(report, lines); };
    if (std::string why = read_lines(file, workspace->buffer, reader, read, asked); !why.empty()) return why;
  } catch (const std::bad_alloc&) {
    report = Report();
    workspace.reset();
    return core::no_memory_clause();
  }
  return report;
}

std::string place_of(const Report& report, const ReportNote& note) {
  return note.line == 0 ? report.path : fmt::format("{}:{}", report.path, note.line);
}

std::string foreign_file(std::string_view first_bytes) {
  for (const Magic& magic : kMagics) {
    if (first_bytes.starts_with(magic.bytes)) return std::string(magic.what);
  }
  constexpr std::size_t kUstar = 257;  // POSIX: where a tar header names itself
  if (first_bytes.size() > kUstar && first_bytes.substr(kUstar).starts_with("ustar"))
    return "is a tar archive: unpack it, and name the folder";
  // Our own output, which is JSON over several lines.
  for (const std::string_view schema : {"kshim-analysis/", "kshim-scan/", "kshim-explain/"}) {
    const std::size_t at = first_bytes.substr(0, 1024).find(schema);
    if (at == std::string_view::npos || first_bytes[first_bytes.find_first_not_of(" \t\r\n")] != '{')
      continue;
    return fmt::format("is what kshim wrote ({}), not a report: name the reports that it was made from",
                       schema.substr(0, schema.size() - 1));
  }
  return {};
}

}  // namespace kshim::input
