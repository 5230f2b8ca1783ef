// SPDX-License-Identifier: Apache-2.0
#include "analyzer/core/text.h"
#include "analyzer/device_code/own_process.h"
#include "analyzer/device_code/source_lines.h"

namespace kshim::source {
namespace {

// Two seconds are enough for 1.5 GB of DWARF.
constexpr ProcessLimits kLimits{
    .cpu_seconds = 10,
    .patience = std::chrono::seconds(20),
    .memory = std::uint64_t{16} << 30,  // the file is mapped
};
constexpr std::size_t kMaxAddresses = 64;
constexpr std::size_t kMaxBuildIdLength = 128;

// What comes back: for each frame "INDEX LINE FILE FUNCTION", each part ended by a newline.
std::string clean(std::string text) {
  constexpr std::size_t kMaxLength = 4096;
  if (text.size() > kMaxLength) text.resize(kMaxLength);
  std::ranges::replace(text, '\n', ' ');
  return text;
}

std::string written(const std::vector<SourceFrames>& all) {
  std::string out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const SourceFrame& frame : all[i])
      out += std::to_string(i) + '\n' + std::to_string(frame.at.line) + '\n' + clean(frame.at.file) + '\n' +
             clean(frame.function) + '\n';
  }
  return out;
}

bool take_line(std::string_view& text, std::string_view& line) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return false;
  line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return true;
}

void parse(std::string_view text, std::vector<SourceFrames>& out) {
  std::string_view index_text;
  std::string_view line_text;
  std::string_view file;
  std::string_view function;
  while (take_line(text, index_text) && take_line(text, line_text) && take_line(text, file) &&
         take_line(text, function)) {
    const auto index = parse_number<std::size_t>(index_text);
    const auto row = parse_number<unsigned>(line_text);
    if (!index || *index >= out.size() || !row) return;
    out[*index].push_back({{std::string(file), *row}, std::string(function)});
  }
}

}  // namespace

// Debian, Fedora and gdb keep the debug files of stripped ones under the first two digits of their build ids.
std::filesystem::path debug_file(const HostFile& file) {
  const bool hex = file.build_id.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!hex || file.build_id.size() < 3 || file.build_id.size() > kMaxBuildIdLength) return {};
  return file.root / "usr/lib/debug/.build-id" / file.build_id.substr(0, 2) /
         (file.build_id.substr(2) + ".debug");
}

bool has_debug_file(const HostFile& file) {
  std::error_code error;
  const std::filesystem::path path = debug_file(file);
  return !path.empty() && std::filesystem::is_regular_file(path, error);
}

std::vector<SourceFrames> host_lines(const HostFile& file, const std::vector<std::uint64_t>& addresses) {
  std::vector<SourceFrames> out(addresses.size());
  if (addresses.empty() || addresses.size() > kMaxAddresses) return out;
  const ProcessAnswer answer =
      ask_in_own_process([&] { return written(read_dwarf(file, addresses)); }, kLimits);
  if (answer.end != ProcessAnswer::End::late) parse(answer.text, out);
  return out;
}

}  // namespace kshim::source
