// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/package_fetch.h"

#include <fcntl.h>
#include <re2/re2.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <csignal>
#include <thread>

#include "analyzer/core/text.h"
#include "analyzer/core/user_error.h"
#include "analyzer/data/wheels.h"

namespace kshim::verbs {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kOldestGlibc = 5;                    // of manylinux_2_X tags
constexpr std::size_t kMaxList = std::size_t{1} << 20;  // what `pip index versions` prints
constexpr unsigned kPlainFrom = 17;                     // manylinux2014 is manylinux_2_17

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
                              sanitize(request.requirement), size_text(most)),
                  exit_status::kNoInput);
}

struct PipRun {
  const fs::path& folder;   ///< where it fetches to
  int out = STDERR_FILENO;  ///< what its stdout is
  std::uint64_t max_bytes = 0;
  const std::function<void(std::uint64_t)>& progress;
};

/// The wait status of pip. UserError where it does not start or fetches more than `max_bytes`.
int run_pip(const FetchRequest& request, std::vector<std::string> arguments, const PipRun& run) {
  std::vector<std::string> words = {request.interpreter, "-m", "pip"};
  std::ranges::move(arguments, std::back_inserter(words));
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
  posix_spawn_file_actions_adddup2(&files, run.out, STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGINT);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const InterruptsIgnored ignored;
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, request.interpreter.c_str(), &files, &attributes, argv.data(), envp.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0)
    throw UserError(fmt::format("{}: {}", request.interpreter, std::generic_category().message(error)),
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
  return asked || !rest.empty() || knows_wheels_of(wheel_name(name).distribution);
}

std::string fetch_wheel(const FetchRequest& request, const core::TemporaryFolder& folder) {
  if (folder.path().empty())
    throw UserError("no temporary folder can be made below TMPDIR", exit_status::kNoInput);
  std::vector<std::string> arguments = {"download", "--no-deps", "--only-binary",
                                        ":all:",    "--dest",    folder.path().string()};
  std::ranges::move(choice_of(request), std::back_inserter(arguments));
  if (::isatty(STDERR_FILENO) != 1) arguments.emplace_back("--quiet");
  arguments.push_back(request.requirement);
  const int status = run_pip(request, std::move(arguments),
                             {folder.path(), STDERR_FILENO, request.max_bytes, request.progress});
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.path(), error))
    if (status == 0 && entry.path().extension() == ".whl") return entry.path().filename().string();
  throw UserError(fmt::format("{}: {} -m pip fetched no wheel{}{} (its message is above); a release that has "
                              "its source alone holds no "
                              "device code",
                              sanitize(request.requirement), request.interpreter,
                              request.python.empty() ? "" : " for Python " + request.python,
                              request.platform.empty() ? "" : " on " + request.platform),
                  exit_status::kNoInput);
}

std::vector<std::string> releases_of(const FetchRequest& request, std::size_t most) {
  const core::TemporaryFolder folder;
  const int out = static_cast<int>(::syscall(SYS_memfd_create, "versions", MFD_CLOEXEC));
  if (out < 0) throw UserError("no memory for the list of releases", exit_status::kNoInput);
  std::vector<std::string> arguments = {"index", "versions", "--only-binary", ":all:"};
  std::ranges::move(choice_of(request), std::back_inserter(arguments));
  arguments.push_back(request.requirement);
  const int status = run_pip(request, std::move(arguments), {folder.path(), out, 0, {}});
  std::string text(kMaxList, '\0');
  const ssize_t got = ::pread(out, text.data(), text.size(), 0);
  ::close(out);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  static const RE2 kVersions(R"((?s).*Available versions: ([^\n]+).*)");
  std::string versions;
  std::vector<std::string> releases;
  if (status == 0 && RE2::FullMatch(text, kVersions, &versions))
    for (const std::string& each : split(versions, ","))
      if (releases.size() < most) releases.emplace_back(trim(each));
  if (releases.empty())
    throw UserError(fmt::format("{}: {} -m pip lists no releases with a wheel", sanitize(request.requirement),
                                request.interpreter),
                    exit_status::kNoInput);
  return releases;
}

}  // namespace kshim::verbs
