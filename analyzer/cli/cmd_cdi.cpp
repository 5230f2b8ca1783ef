// SPDX-License-Identifier: Apache-2.0
// kshim cdi: a specification of the Container Device Interface that brings the shim into containers, without
// a change to them. https://github.com/cncf-tags/container-device-interface/blob/main/SPEC.md
#include <elf.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "analyzer/cli/command.h"
#include "analyzer/cli/output.h"
#include "analyzer/cli/self.h"
#include "analyzer/cli/terminal.h"
#include "analyzer/core/text.h"
#include "kshim/image/elf.h"
#include "kshim/report/libc_calls.h"
#include "kshim/report/report_folder.h"

namespace kshim::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kShimInside = "/usr/lib/kshim/libkshim.so";
constexpr const char* kReportsInside = "/var/spool/kshim";
constexpr unsigned kFloor = 17;  // of what the release builds, glibc 2.17

struct CdiOptions {
  std::string shim;
  std::string report = "/var/spool/kshim";
  std::string preload;
  std::string output;
};

/// The newest GLIBC_2.N without which it is not loaded (elf(5), Elf64_Verneed); 0 where it is no such file.
unsigned glibc_of(const fs::path& path) {
  constexpr std::size_t kMax = std::size_t{64} << 20;
  constexpr unsigned kMaxEntries = 1000;
  constexpr std::string_view kName = "GLIBC_2.";
  const std::string file = files::read_whole(path, kMax).value_or("");
  const auto elf = image::ElfReader::open({reinterpret_cast<const std::byte*>(file.data()), file.size()});
  if (!elf) return 0;
  const auto needs = elf->section(".gnu.version_r");
  const auto strings = elf->section(".dynstr");
  if (!needs || !strings) return 0;
  const std::string_view names = text_of(strings->bytes);
  const auto word = [&](std::uint64_t at) { return read_le<std::uint32_t>(needs->bytes, at).value_or(0); };
  unsigned newest = 0;
  unsigned entries = 0;
  for (std::uint64_t file_at = 0; entries < kMaxEntries; file_at += word(file_at + 12)) {
    for (std::uint64_t at = file_at + word(file_at + 8); ++entries < kMaxEntries; at += word(at + 12)) {
      const bool weak = (word(at + 4) & VER_FLG_WEAK) != 0;
      const std::string_view name = names.substr(std::min<std::size_t>(word(at + 8), names.size()));
      if (!weak && name.starts_with(kName))
        newest = std::max(newest, first_number<unsigned>(name.substr(kName.size())).value_or(0));
      if (word(at + 12) == 0) break;
    }
    if (word(file_at + 12) == 0) break;
  }
  return newest;
}

fs::path shim_of(const CdiOptions& options) {
  std::error_code error;
  const fs::path found = options.shim.empty() ? shim_or_refuse() : fs::canonical(options.shim, error);
  if (found.empty())
    throw UserError(fmt::format("--shim {}: {}", sanitize(options.shim), error.message()),
                    exit_status::kNoInput);
  const unsigned glibc = glibc_of(found);
  if (glibc == 0)
    throw UserError(fmt::format("--shim {}: is no library for glibc", sanitize(found.string())));
  if (glibc > kFloor)
    print_warning(
        fmt::format("{} needs glibc 2.{}: containers with an older one run without it, and their loader says "
                    "so; the release's file needs 2.17",
                    found.string(), glibc));
  return found;
}

/// Every user of a container writes there; nobody removes what another wrote. Containers get the folder that
/// the path leads to now.
fs::path report_folder(const std::string& name) {
  const auto refuse = [&](std::string_view why) -> UserError {
    return UserError(fmt::format("--report {}: {}; give another folder", sanitize(name), why));
  };
  fs::path path = fs::absolute(name).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  using Walk = report::FolderWalk<report::LibcCalls>;
  int fd = -1;
  if (const int error = Walk::open(path.parent_path().native(), {.make_missing = true}, fd); error != 0)
    throw refuse(error == ELOOP ? "a link on the way belongs to another user" : std::strerror(error));
  const files::Descriptor parent(fd);
  const mode_t mask = ::umask(0);  // a chmod could meet another folder of this name
  const bool made = ::mkdirat(fd, path.filename().c_str(), S_ISVTX | 0777) == 0;
  const int error = errno;
  ::umask(mask);
  if (!made && error != EEXIST) throw refuse(std::strerror(error));
  const files::Descriptor folder(::openat(fd, path.filename().c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!folder || ::fstat(folder.get(), &status) != 0) throw refuse(std::strerror(errno));
  if (!S_ISDIR(status.st_mode)) throw refuse(S_ISLNK(status.st_mode) ? "is a link" : "is no folder");
  if (report::is_another_user(status.st_uid, ::geteuid())) throw refuse("belongs to another user");
  if (report::others_may_write(status, ::geteuid()) && (status.st_mode & S_ISVTX) == 0)
    throw refuse("every user can remove what is in it (no sticky bit)");
  std::error_code ignored;
  const fs::path real = fs::read_symlink(fmt::format("/proc/self/fd/{}", folder.get()), ignored);
  return real.empty() ? path : real;
}

int write_cdi(const CdiOptions& options) {
  for (const std::string& text : {options.shim, options.report, options.preload})
    if (utf8_of(text) != text)
      throw UserError(fmt::format("{}: a specification is UTF-8, and this is not", sanitize(text)));
  const fs::path shim = shim_of(options);
  const fs::path report = report_folder(options.report);
  Output output(options.output, STDOUT_FILENO, exit_status::kMisuse);
  using Json = nlohmann::ordered_json;
  const auto mount = [](const fs::path& host, const char* inside, const char* rights) {
    return Json{{"hostPath", host.string()},
                {"containerPath", inside},
                {"options", {rights, "nosuid", "nodev", "bind"}}};
  };
  const Json spec = {
      {"cdiVersion", "0.5.0"},
      {"kind", "kshim/shim"},
      {"devices",
       {{{"name", "record"},
         {"containerEdits",
          {{"env",
            {fmt::format("LD_PRELOAD={}{}{}", kShimInside, options.preload.empty() ? "" : ":",
                         options.preload),
             fmt::format("KSHIM_REPORT={}/%h.%p.jsonl", kReportsInside)}},
           {"mounts", {mount(shim, kShimInside, "ro"), mount(report, kReportsInside, "rw")}}}}}}}};
  output.write(spec.dump(2) + "\n");
  if (options.preload.empty())
    print_note(
        "a container's own LD_PRELOAD is replaced, also one that --env sets: kshim cdi --preload ITS_OWN "
        "writes a "
        "specification for images that have one");
  return exit_status::kOk;
}

}  // namespace

std::function<int()> set_up_cdi(Arguments& arguments) {
  auto options = std::make_shared<CdiOptions>();
  arguments.add("--shim", options->shim);
  arguments.add("--report", options->report);
  arguments.add("--preload", options->preload);
  arguments.add("-o,--output", options->output);
  return [options] { return write_cdi(*options); };
}

}  // namespace kshim::cli
