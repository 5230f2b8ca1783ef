// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/package_fetch.h"

#include <fcntl.h>
#include <re2/re2.h>
#include <spawn.h>
#include <sys/wait.h>

#include <csignal>
#include <thread>

#include "analyzer/core/text.h"
#include "analyzer/core/user_error.h"
#include "analyzer/data/wheels.h"
#include "analyzer/device_code/mapped_file.h"
#include "analyzer/input/files/container.h"
#include "kshim/files/open_file.h"

namespace kshim::verbs {
using core::sanitize;
using core::UserError;
namespace exit_status = core::exit_status;

namespace {

namespace fs = std::filesystem;

constexpr unsigned kOldestGlibc = 5;  // of manylinux_2_X tags
constexpr unsigned kPlainFrom = 17;   // manylinux2014 is manylinux_2_17

// pip takes a tag as it stands: a wheel for an older glibc needs its own.
std::vector<std::string> tags_of(const std::string& platform) {
  static const RE2 kManylinux(R"(manylinux_2_(\d+)_(\w+))");
  unsigned minor = 0;
  std::string machine;
  if (!RE2::FullMatch(platform, kManylinux, &minor, &machine)) return {platform};
  std::vector<std::string> tags;
  for (unsigned each = std::min(minor, 99U); each >= kOldestGlibc; --each)
    tags.push_back(fmt::format("manylinux_2_{}_{}", each, machine));
  if (minor >= kPlainFrom) tags.push_back("manylinux2014_" + machine);
  if (minor >= 12) tags.push_back("manylinux2010_" + machine);
  tags.push_back("manylinux1_" + machine);
  tags.push_back("linux_" + machine);
  return tags;
}

std::vector<std::string> choice_of(const FetchRequest& request) {
  std::vector<std::string> out;
  if (!request.python.empty())
    out.insert(out.end(), {"--python-version", request.python, "--implementation", "cp"});
  if (!request.platform.empty())
    for (const std::string& tag : tags_of(request.platform)) out.insert(out.end(), {"--platform", tag});
  return out;
}

std::uint64_t bytes_below(const fs::path& folder) {
  std::uint64_t sum = 0;
  std::error_code error;
  for (auto at = fs::recursive_directory_iterator(folder, error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    std::error_code gone;
    const std::uint64_t size = at->is_regular_file(gone) ? at->file_size(gone) : 0;
    if (!gone) sum += size;
  }
  return sum;
}

/// uv's name of a platform: "x86_64-manylinux_2_28".
std::string uv_platform(const std::string& platform) {
  static const RE2 kManylinux(R"((manylinux\w*?)_(x86_64|aarch64))");
  std::string tag;
  std::string machine;
  if (RE2::FullMatch(platform, kManylinux, &tag, &machine)) return machine + "-" + tag;
  return platform == "win_amd64" ? "x86_64-pc-windows-msvc" : platform;
}

/// The packages that a wheel needs in any case and that have kernels: CUDA's libraries, and projects whose
/// wheels the tables know.
std::vector<std::string> companions_of(std::string_view metadata) {
  static const RE2 kNeeds(R"(Requires-Dist: ([\w.-]+)(\[[^\]]*\])? ?\(?([=<>!~][^;)]*)?\)?\s*(;.*)?)");
  std::vector<std::string> out;
  for (const std::string& line : core::split(metadata.substr(0, metadata.find("\n\n")), "\n")) {
    std::string name;
    std::string extra;
    std::string version;
    std::string marker;
    if (!RE2::FullMatch(std::string(core::trim(line)), kNeeds, &name, &extra, &version, &marker) ||
        core::contains(marker, "extra"))
      continue;
    const data::ProjectName project(name);
    if (project.is_nvidias() || project.normal() == "cuda-toolkit" ||
        !data::wheel_name(name).distribution.empty())
      out.push_back(name + extra + std::string(core::trim(version)));
  }
  return out;
}

/// What a wheel says of itself.
Fetched described(const fs::path& path) {
  constexpr std::size_t kMost = std::size_t{16} << 20;
  Fetched out{.name = path.filename().string()};
  std::error_code error;
  if (fs::is_directory(path, error)) {
    for (const fs::directory_entry& entry : fs::directory_iterator(path, error))
      if (const auto text = files::read_up_to(entry.path() / "METADATA", kMost))
        out.companions = companions_of(*text);
    return out;
  }
  const auto opened = device_code::MappedFile::open(path);
  if (!std::holds_alternative<device_code::MappedFile>(opened)) return out;
  input::ContainerVisitor visitor;
  visitor.wants = [](std::string_view name, std::uint64_t size) {
    return size <= kMost && name.ends_with(".dist-info/METADATA");
  };
  visitor.visit = [&](const input::Member& member) { out.companions = companions_of(text_of(member.bytes)); };
  input::ContainerLimits limits;
  limits.depth = 0;
  each_member(std::get<device_code::MappedFile>(opened).bytes(), out.name, limits, visitor);
  return out;
}

/// What uv unpacked, under the name that its wheel has in the index: "things-2.0".
fs::path named_after_package(const fs::path& folder) {
  constexpr std::string_view kInfo = ".dist-info";
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    std::string name = entry.path().filename().string();
    if (!name.ends_with(kInfo)) continue;
    name.resize(name.size() - kInfo.size());
    const fs::path to = folder.parent_path() / name;
    fs::rename(folder, to, error);
    return error ? folder : to;
  }
  return folder;
}

/// Ctrl-C ends pip, which is in the same process group; what was fetched is removed after that.
class InterruptsIgnored {
 public:
  InterruptsIgnored() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGINT, &ignore, &old_);
  }
  InterruptsIgnored(const InterruptsIgnored&) = delete;
  InterruptsIgnored& operator=(const InterruptsIgnored&) = delete;
  ~InterruptsIgnored() { ::sigaction(SIGINT, &old_, nullptr); }

 private:
  struct sigaction old_ {};
};

[[noreturn]] void refuse_size(const FetchRequest& request, std::uint64_t most) {
  throw UserError(fmt::format("{}: its wheel is larger than {}, which --max-download allows",
                              sanitize(request.requirement), core::size_text(most)),
                  exit_status::kNoInput);
}

struct PipRun {
  const fs::path& folder;  ///< where it fetches to
  std::uint64_t max_bytes = 0;
  const std::function<void(std::uint64_t)>& progress;
};

/// The wait status of a program. UserError where it does not start or fetches more than `max_bytes`.
int run_program(const FetchRequest& request, std::vector<std::string> words, const PipRun& run) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  // pip unpacks below TMPDIR: there its progress can be seen.
  std::vector<std::string> variables = {"TMPDIR=" + run.folder.string(), "PIP_DISABLE_PIP_VERSION_CHECK=1"};
  for (char** each = environ; *each != nullptr; ++each)
    if (!std::string_view(*each).starts_with("TMPDIR=")) variables.emplace_back(*each);
  std::vector<char*> envp;
  for (std::string& each : variables) envp.push_back(each.data());
  envp.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGINT);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const InterruptsIgnored ignored;
  pid_t pid = 0;
  const int error = posix_spawn(&pid, argv.front(), &files, &attributes, argv.data(), envp.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0)
    throw UserError(fmt::format("{}: {}", sanitize(words.front()), std::generic_category().message(error)),
                    exit_status::kNoInput);
  constexpr std::chrono::milliseconds kStep(100);
  int status = 0;
  while (::waitpid(pid, &status, WNOHANG) == 0) {
    const std::uint64_t bytes = run.max_bytes != 0 || run.progress ? bytes_below(run.folder) : 0;
    if (run.progress) run.progress(bytes);
    if (run.max_bytes != 0 && bytes > run.max_bytes) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, &status, 0);
      refuse_size(request, run.max_bytes);
    }
    std::this_thread::sleep_for(kStep);
  }
  if (run.max_bytes != 0 && bytes_below(run.folder) > run.max_bytes) refuse_size(request, run.max_bytes);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) throw UserError("interrupted", 130);
  return status;
}

}  // namespace

bool is_requirement(const std::string& word, bool asked) {
  static const RE2 kRequirement(
      R"(([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)((?:\[[A-Za-z0-9._, -]*\])?(?:==[A-Za-z0-9.!+*_-]+)?))");
  std::error_code error;
  std::string name;
  std::string rest;
  if (!RE2::FullMatch(word, kRequirement, &name, &rest) || fs::exists(word, error)) return false;
  // A folder that is not there, "dist" or "build", is no package by that name.
  return asked || !rest.empty() || data::knows_wheels_of(data::wheel_name(name).distribution);
}

bool has_pip(const std::string& interpreter) {
  constexpr const char* kAsks =
      "import importlib.util, sys; sys.exit(importlib.util.find_spec('pip') is None)";
  const core::TemporaryFolder folder;
  return run_program({}, {interpreter, "-c", kAsks}, {folder.path(), 0, {}}) == 0;
}

Fetched fetch_wheel(const FetchRequest& request, const core::TemporaryFolder& folder) {
  if (folder.path().empty())
    throw UserError("no temporary folder can be made below TMPDIR", exit_status::kNoInput);
  std::vector<std::string> arguments;
  const std::string place = folder.path().string();
  if (request.uv.empty()) {
    arguments = {request.interpreter, "-m",    "pip",    "download", "--no-deps",
                 "--only-binary",     ":all:", "--dest", place};
    std::ranges::move(choice_of(request), std::back_inserter(arguments));
  } else {
    arguments = {request.uv,  "pip",           "install", "--python", request.interpreter, "--no-cache",
                 "--no-deps", "--only-binary", ":all:",   "--target", place + "/unpacked"};
    if (!request.python.empty()) arguments.insert(arguments.end(), {"--python-version", request.python});
    if (!request.platform.empty())
      arguments.insert(arguments.end(), {"--python-platform", uv_platform(request.platform)});
  }
  if (::isatty(STDERR_FILENO) != 1) arguments.emplace_back("--quiet");
  arguments.push_back(request.requirement);
  const int status =
      run_program(request, std::move(arguments), {folder.path(), request.max_bytes, request.progress});
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.path(), error)) {
    if (status != 0) break;
    if (entry.path().extension() == ".whl") return described(entry.path());
    if (entry.path().filename() == "unpacked") return described(named_after_package(entry.path()));
  }
  throw UserError(fmt::format("{}: {} fetched no wheel{}{} (its message is above); a release that has "
                              "its source alone holds no "
                              "device code",
                              sanitize(request.requirement),
                              request.uv.empty() ? request.interpreter + " -m pip" : request.uv,
                              request.python.empty() ? "" : " for Python " + request.python,
                              request.platform.empty() ? "" : " on " + request.platform),
                  exit_status::kNoInput);
}

}  // namespace kshim::verbs
