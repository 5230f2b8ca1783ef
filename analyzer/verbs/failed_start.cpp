// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/failed_start.h"

#include <unistd.h>

#include "analyzer/device_code/mapped_file.h"
#include "analyzer/input/machine/facts.h"

namespace kshim::verbs {
namespace {

namespace fs = std::filesystem;

std::map<std::string, std::string> environment_with(std::string_view search_path) {
  auto out = input::own_environment();
  out.insert_or_assign("LD_LIBRARY_PATH", std::string(search_path));
  return out;
}

// Where CUDA's libraries lie without the linker being told: toolkits, wheels, conda.
std::vector<std::string> other_folders(const input::Machine& machine) {
  std::vector<std::string> out;
  for (const input::Toolkit& toolkit : find_toolkits(machine)) {
    for (const char* below : {"lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"})
      out.push_back(input::join_path(toolkit.folder, below));
  }
  for (const input::Python& python : find_pythons(machine))
    out.insert(out.end(), python.library_folders.begin(), python.library_folders.end());
  if (const std::string_view conda = machine.env("CONDA_PREFIX"); !conda.empty())
    out.push_back(input::join_path(conda, "lib"));
  return out;
}

}  // namespace

std::vector<diagnose::MissingLibrary> missing_at_start(const fs::path& program,
                                                       std::string_view search_path) {
  std::error_code error;
  const fs::path path = fs::absolute(program, error);
  if (error) return {};
  const input::Machine machine("/", environment_with(search_path));
  const input::Program found = look_at_program(machine, input::Loader(machine), path.string());
  std::vector<diagnose::MissingLibrary> out;
  for (const input::Missing& missing : found.missing)
    out.push_back({path.string(), missing.name, missing.needed_by, {}, input::is_cuda_library(missing.name)});
  if (out.empty()) return out;
  const std::vector<std::string> folders = other_folders(machine);
  for (diagnose::MissingLibrary& missing : out) {
    for (const std::string& folder : folders) {
      if (missing.of_cuda && missing.folder.empty() &&
          machine.is_file(input::join_path(folder, missing.name)))
        missing.folder = folder;
    }
  }
  return out;
}

bool lacks_driver(const fs::path& program, std::string_view search_path) {
  const input::Machine machine("/", environment_with(search_path));
  if (input::Loader(machine).find("libcuda.so.1")) return false;
  const auto opened = device_code::MappedFile::open(program);
  const auto* file = std::get_if<device_code::MappedFile>(&opened);
  return file != nullptr && !device_code::find_device_code(file->bytes()).images.empty();
}

namespace {

constexpr std::size_t kMaxFiles = 3;

/// The linker's text for a file may be relative to where the process began.
std::string absolute(const std::string& path, const std::string& folder) {
  if (path.starts_with('/') || folder.empty()) return path;
  return (std::filesystem::path(folder) / path).lexically_normal().string();
}

/// "a, b and 2 more": empty where no file was loaded in that way.
std::string files_loaded(const input::Report& report, std::string_view how) {
  std::vector<std::string> names;
  std::size_t more = 0;
  for (const input::BypassRecord& bypass : report.bypasses) {
    if (bypass.how != how) continue;
    const std::string path = absolute(bypass.path, report.process.cwd);
    if (names.size() < kMaxFiles)
      names.push_back(path);
    else
      ++more;
  }
  if (more != 0) names.push_back(fmt::format("{} more", more));
  return core::enumerate(names);
}

}  // namespace

std::optional<diagnose::BlindProcess> blind_by_bypass(const input::Report& report) {
  std::string reason;
  if (const std::string files = files_loaded(report, "deepbind"); !files.empty()) {
    reason = fmt::format("what {} asked of CUDA went past libkshim.so: loaded with RTLD_DEEPBIND", files);
    const auto audit = report.process.env.find("LD_AUDIT");
    const bool audited =
        audit != report.process.env.end() && core::contains(audit->second, "libkshim-audit.so");
    reason +=
        audited ? ", and not bound by calls that `kshim run --audit` sees" : " (try `kshim run --audit`)";
  }
  if (const std::string files = files_loaded(report, "namespace"); !files.empty()) {
    if (!reason.empty()) reason += "; ";
    reason += fmt::format(
        "what {} asked of CUDA went past libkshim.so: loaded with dlmopen into a namespace of its own",
        files);
  }
  if (const std::string files = files_loaded(report, "table"); !files.empty()) {
    if (!reason.empty()) reason += "; ";
    reason += fmt::format(
        "the CUDA runtime in {} is older than 12, and its loads of device code are not recorded "
        "(KSHIM_PATCH_TABLE=1 records them)",
        files);
  }
  if (!files_loaded(report, "absent").empty())
    reason = "libkshim.so was not in it: libkshim-injection.so recorded what the driver's error log says";
  if (reason.empty()) return std::nullopt;
  return diagnose::BlindProcess{
      .pid = static_cast<long>(report.process.pid), .exe = report.process.exe, .reason = std::move(reason)};
}

}  // namespace kshim::verbs
