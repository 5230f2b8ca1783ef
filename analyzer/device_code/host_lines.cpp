// SPDX-License-Identifier: Apache-2.0
#include <sstream>

#include "analyzer/device_code/own_process.h"
#include "analyzer/device_code/source_lines.h"

namespace kshim::device_code {
namespace {

// Two seconds are enough for 1.5 GB of DWARF.
constexpr ProcessLimits kLimits{
    .cpu_seconds = 10,
    .patience = std::chrono::seconds(20),
    .memory = std::uint64_t{16} << 30,  // the file is mapped
};
constexpr std::size_t kMaxAddresses = 64;
constexpr std::size_t kMaxBuildIdLength = 128;

// What comes back: for each frame "INDEX LINE FILE\nFUNCTION\n".
std::string clean(std::string text) {
  constexpr std::size_t kMaxLength = 4096;
  if (text.size() > kMaxLength) text.resize(kMaxLength);
  std::ranges::replace(text, '\n', ' ');
  return text;
}

std::string written(const std::vector<SourceFrames>& all) {
  std::string out;
  for (std::size_t i = 0; i < all.size(); ++i)
    for (const SourceFrame& frame : all[i])
      out += fmt::format("{} {} {}\n{}\n", i, frame.at.line, clean(frame.at.file), clean(frame.function));
  return out;
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
      ask_in_own_process([&](int) { return written(read_dwarf(file, addresses)); }, kLimits);
  if (answer.end == ProcessAnswer::End::late) return out;
  std::istringstream rows(answer.text);
  std::size_t index = 0;
  SourceFrame frame;
  while (rows >> index >> frame.at.line && rows.ignore() && std::getline(rows, frame.at.file) &&
         std::getline(rows, frame.function) && index < out.size())
    out[index].push_back(frame);
  return out;
}

}  // namespace kshim::device_code
