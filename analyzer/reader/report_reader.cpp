// SPDX-License-Identifier: Apache-2.0
#include "analyzer/reader/report_reader.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <simdjson.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>

#include "analyzer/reader/record_parser.h"
#include "kshim/report/schema.h"

namespace kshim::analysis {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 20;
constexpr std::size_t kNotesKept = 3;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

std::string system_text(int error) { return std::generic_category().message(error); }

/// What the first line says about the file; empty when it is a report that we read.
std::string judge_schema(std::string_view schema) {
  if (schema == report::kReportSchema) return {};
  constexpr std::string_view kFamily = "kshim-report/";
  if (!schema.starts_with(kFamily))
    return "is not a kshim report: its first line is no `process` record of one";
  return fmt::format(
      "is of schema {}, this kshim reads {}: use the kshim that belongs to the shim that wrote it",
      schema.substr(0, 40), report::kReportSchema);
}

class LineReader {
 public:
  explicit LineReader(Report& report) : report_(report) {}

  /// An empty string, or why the file is no report.
  std::string line(std::string_view text, bool complete) {
    ++number_;
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) return {};
    simdjson::dom::element element;
    const auto error = parser_.parse(text.data(), text.size(), false).get(element);
    simdjson::dom::object object;
    if (error != simdjson::SUCCESS || element.get(object) != simdjson::SUCCESS) {
      return broken(error != simdjson::SUCCESS ? "not valid JSON" : "not a JSON object", complete);
    }
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
    if (std::string odd = parse_record(object, number_, report_); !odd.empty()) note(odd);
    return {};
  }
  void too_long() {
    ++number_;
    note(fmt::format("longer than {} MiB, skipped", kLongestLine >> 20));
  }
  std::string finish() {
    if (!seen_process_) return number_ == 0 ? "is empty" : judge_schema({});
    if (notes_ > kNotesKept) {
      report_.notes.push_back(fmt::format("{}: {} more lines like these", report_.path, notes_ - kNotesKept));
    }
    return {};
  }

 private:
  std::string broken(const char* why, bool complete) {
    if (!seen_process_) return "is not a kshim report: its first line is no `process` record of one";
    note(complete ? fmt::format("skipped, {}", why)
                  : std::string("the last line is torn: the process died while writing it"));
    return {};
  }
  void note(std::string_view text) {
    if (notes_++ < kNotesKept) report_.notes.push_back(fmt::format("{}:{}: {}", report_.path, number_, text));
  }

  Report& report_;
  simdjson::dom::parser parser_{kLongestLine};
  std::uint32_t number_ = 0;
  std::size_t notes_ = 0;
  bool seen_process_ = false;
};

/// Collects bytes and hands out lines. Behind the bytes there is always room for simdjson to read beyond a
/// line's end.
class LineBuffer {
 public:
  char* room() {
    bytes_.resize(used_ + kChunk + simdjson::SIMDJSON_PADDING);
    return bytes_.data() + used_;
  }
  void filled(std::size_t count) { used_ += count; }
  template <class Visit>
  std::string drain(Visit&& visit) {
    std::size_t begin = 0;
    while (const void* newline = std::memchr(bytes_.data() + begin, '\n', used_ - begin)) {
      const auto end = static_cast<std::size_t>(static_cast<const char*>(newline) - bytes_.data());
      if (std::string why = visit(std::string_view(bytes_.data() + begin, end - begin)); !why.empty())
        return why;
      begin = end + 1;
    }
    std::memmove(bytes_.data(), bytes_.data() + begin, used_ - begin);
    used_ -= begin;
    return {};
  }
  std::string_view rest() const { return {bytes_.data(), used_}; }
  void drop() { used_ = 0; }

 private:
  std::string bytes_;
  std::size_t used_ = 0;
};

std::string read_lines(int fd, LineReader& reader) {
  LineBuffer buffer;
  bool skipping = false;
  for (;;) {
    const ssize_t got = ::read(fd, buffer.room(), kChunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fmt::format("cannot be read: {}", system_text(errno));
    if (got == 0) break;
    buffer.filled(static_cast<std::size_t>(got));
    std::string why = buffer.drain([&](std::string_view text) -> std::string {
      if (skipping) {
        skipping = false;
        reader.too_long();
        return {};
      }
      return reader.line(text, true);
    });
    if (!why.empty()) return why;
    if (buffer.rest().size() > kLongestLine) {
      skipping = true;
      buffer.drop();
    }
  }
  if (skipping) {
    reader.too_long();
  } else if (!buffer.rest().empty()) {
    if (std::string why = reader.line(buffer.rest(), false); !why.empty()) return why;
  }
  return reader.finish();
}

}  // namespace

std::variant<Report, std::string> read_report(const std::filesystem::path& path) {
  // A FIFO or a device in a folder of reports must not hang us: O_NONBLOCK, then only regular files.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return fmt::format("cannot be opened: {}", system_text(errno));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return fmt::format("cannot be read: {}", system_text(errno));
  if (!S_ISREG(status.st_mode)) return std::string("is not a regular file");
  Report report;
  report.path = path.string();
  LineReader reader(report);
  if (std::string why = read_lines(file.get(), reader); !why.empty()) return why;
  return report;
}

}  // namespace kshim::analysis
