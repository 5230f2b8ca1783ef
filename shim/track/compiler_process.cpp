// SPDX-License-Identifier: Apache-2.0
#include "track/compiler_process.h"

#include <elf.h>
#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "guest/auxiliary_vector.h"
#include "guest/own_file.h"
#include "guest/program_path.h"
#include "guest/slices.h"
#include "guest/syscalls.h"
#include "kshim/image/compiler_program.h"
#include "kshim/image/ptx.h"
#include "report/process_record.h"

namespace kshim::shim {
namespace {

using report::Field;
using report::RecordType;

std::string_view next_argument(std::string_view& rest) noexcept {
  const std::string_view argument = rest.substr(0, rest.find('\0'));
  rest.remove_prefix(std::min(rest.size(), argument.size() + 1));
  return argument;
}

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

constexpr std::string_view kArchOptions[] = {"arch",     "gpu-architecture", "gpu-name",     "code",
                                             "gpu-code", "gencode",          "generate-code"};

// Of this thread: /proc/self is the main thread's, which may have ended (pthread_exit).
constexpr char kOwnFile[] = "/proc/thread-self/exe";
constexpr char kOwnArguments[] = "/proc/thread-self/cmdline";

std::atomic<bool> g_compiler{false};

}  // namespace

namespace {

/// By the name that the program was started by, which costs no system call. An open file was started by its
/// number (fexecve).
bool may_be_compiler(std::string_view name) noexcept {
  return name.find_first_not_of("0123456789") == std::string_view::npos || image::is_compiler_program(name);
}

}  // namespace

void look_at_program() noexcept {
  const auto* const given = reinterpret_cast<const char*>(auxiliary_value(AT_EXECFN));
  if (given != nullptr && !may_be_compiler(base_name(given))) return;
  char path[4096];
  const std::size_t size = read_program_path(path, sizeof path);
  g_compiler.store(image::is_compiler_program(base_name({path, size})), std::memory_order_relaxed);
}

bool is_compiler_process() noexcept { return g_compiler.load(std::memory_order_relaxed); }

void AskedArchs::add_names_in(std::string_view value) noexcept {
  for (std::size_t at = 0; at < value.size(); ++at) {
    if (at != 0 && value[at - 1] != ',' && value[at - 1] != '=' && value[at - 1] != '[' &&
        value[at - 1] != '"')
      continue;
    const std::string_view rest = part_of(value, at);
    for (const std::string_view prefix : {"sm_", "compute_", "lto_"}) {
      if (!rest.starts_with(prefix)) continue;
      std::size_t size = prefix.size();
      while (size < rest.size() && is_digit(rest[size])) ++size;
      if (size == prefix.size()) break;
      if (size < rest.size() && (rest[size] == 'a' || rest[size] == 'f')) ++size;
      const std::string_view name = part_of(rest, 0, size);
      if (count_ < kMax && std::find(rows_, rows_ + count_, name) == rows_ + count_) rows_[count_++] = name;
      break;
    }
  }
}

void AskedArchs::read(std::string_view arguments) noexcept {
  count_ = 0;
  next_argument(arguments);
  while (!arguments.empty()) {
    std::string_view option = next_argument(arguments);
    if (!option.starts_with('-')) continue;
    option.remove_prefix(option.starts_with("--") ? 2 : 1);
    const std::size_t equals = option.find('=');
    const std::string_view name = option.substr(0, equals);
    if (std::find(std::begin(kArchOptions), std::end(kArchOptions), name) == std::end(kArchOptions)) continue;
    if (equals != std::string_view::npos) {
      add_names_in(part_of(option, equals + 1));
    } else {
      add_names_in(next_argument(arguments));
    }
  }
}

void CompilerProcess::find_version() noexcept {
  const OwnFile file = open_regular_file(kOwnFile);
  const image::Version version = image::compiler_release(
      [&](std::uint64_t offset, void* to, std::size_t size) { return file.read(offset, to, size); }, block_);
  if (version.known()) version_ << image::to_name(version).view();
}

void CompilerProcess::find_input_isa(std::string_view arguments) noexcept {
  constexpr unsigned kMaxFiles = 16;
  constexpr std::size_t kHead = 16384;
  next_argument(arguments);
  bool output = false;
  for (unsigned files = 0; !arguments.empty() && files < kMaxFiles;) {
    PathText argument;
    argument << next_argument(arguments);
    const bool is_output =
        std::exchange(output, argument.view() == "-o" || argument.view() == "--output-file");
    if (is_output || argument.empty() || argument.view().starts_with('-')) continue;
    ++files;
    const OwnFile file = open_regular_file(argument.c_str());
    const std::size_t size = file.read(0, block_, kHead);
    const auto ptx = image::PtxReader::open({reinterpret_cast<const std::byte*>(block_), size});
    if (!ptx) continue;
    input_isa_ << image::to_name(ptx->isa()).view();
    return;
  }
}

void CompilerProcess::find_parents() noexcept {
  parent_count_ = 0;
  std::uint64_t pid = raw::parent_process();
  while (pid > 1 && parent_count_ < kMaxParents) {
    PathText path;
    path << "/proc/" << pid << "/stat";
    const std::string_view stat(block_, open_regular_file(path.c_str()).read_whole(block_, 1024));
    if (stat.empty()) return;
    report::ProcessRow& row = parents_[parent_count_];
    row = {pid, start_of(stat), {}};
    PathText exe;
    exe << "/proc/" << pid << "/exe";
    char* const room = parent_paths_[parent_count_];
    const ssize_t size = raw::read_link(exe.c_str(), room, sizeof parent_paths_[0]);
    if (size > 0) row.exe = {room, static_cast<std::size_t>(size)};
    ++parent_count_;
    pid = parent_of(stat);
  }
}

void CompilerProcess::write(Report& report, std::uint64_t status) noexcept {
  const ssize_t size = raw::read_link(kOwnFile, path_, sizeof path_);
  const std::string_view path(path_, size > 0 ? static_cast<std::size_t>(size) : 0);
  const std::string_view arguments(
      arguments_, open_regular_file(kOwnArguments).read_whole(arguments_, sizeof arguments_));
  asked_.read(arguments);
  find_version();
  if (base_name(path).starts_with("ptxas")) find_input_isa(arguments);
  find_parents();
  report.write<RecordType::compiler>([&](auto& record) {
    record.template add<Field::compiler_program>(base_name(path));
    record.template add<Field::compiler_version>(version_.empty() ? std::string_view() : version_.view());
    record.template add<Field::compiler_path>(path);
    record.template add<Field::compiler_asked>(asked_.rows());
    record.template add<Field::compiler_input_isa>(input_isa_.empty() ? std::string_view()
                                                                      : input_isa_.view());
    record.template add<Field::compiler_status>(status);
    record.template add<Field::compiler_parent>(std::span<const report::ProcessRow>(parents_, parent_count_));
  });
}

}  // namespace kshim::shim
