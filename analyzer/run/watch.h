// SPDX-License-Identifier: Apache-2.0
// Finds out which processes loaded the shim. Two sources: the shim's constructor says so to a
// socket whose name nobody else knows (KSHIM_RUN_SOCKET), and /proc shows descendants that use CUDA without
// the shim among their mappings.
#pragma once
#include <sys/types.h>

#include <exception>
#include <thread>

#include "analyzer/verbs/analysis.h"
#include "kshim/files/open_file.h"

namespace kshim::run {

/// A report that a process of a run said it writes (shim/report/run_socket.h), wherever it lies: of another
/// user, of a program that changes KSHIM_REPORT, of a `kshim run` inside of this one.
struct Announced {
  pid_t pid = 0;
  std::filesystem::path path;  ///< empty where the process could make none
};

struct Elsewhere {
  std::vector<std::filesystem::path> reports;  ///< that are not among those of the run's folder
  std::vector<diagnose::BlindProcess> lost;    ///< whose report is gone or empty
};

/// `known`: the reports of the run's folder. `exe_of` names the program of a process, where that was seen.
Elsewhere find_announced(const std::vector<Announced>& announced,
                         const std::vector<std::filesystem::path>& known,
                         const std::function<std::string(pid_t)>& exe_of);

/// Tells the `kshim run` around this one, if there is one, where the reports lie.
void announce(const std::vector<std::filesystem::path>& reports);

/// Where a socket may be, in the order in which they are tried: /tmp, TMPDIR, XDG_RUNTIME_DIR, and `reports`.
std::vector<std::filesystem::path> socket_folders(const std::filesystem::path& reports);

/// Why a process is blind that was started without the environment of the run.
inline constexpr std::string_view kCleared =
    "its environment was cleared (env -i, sudo), LD_PRELOAD among it: start kshim inside, as in `env -i "
    "kshim run -- PROGRAM`";

class Watch {
 public:
  explicit Watch(const std::vector<std::filesystem::path>& folders = socket_folders({}));
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// Empty where no folder took one: then /proc alone tells.
  const std::string& socket_path() const noexcept { return socket_path_; }
  /// Receives and scans in a thread of its own, from start() to stop(), which throws what the thread threw.
  /// Between them call nothing else.
  void start();
  void stop();
  /// Takes in what the socket holds.
  void receive();
  /// Looks at the descendants of this process, cheaply at those that were judged before. True when one is
  /// new.
  bool scan();
  /// The processes without the shim: `child`, started from `program`, and those in which scan() found CUDA.
  /// Where nothing was recorded, also those that no preload reaches (static, setuid): CUDA may have been used
  /// there.
  std::vector<diagnose::BlindProcess> blind(pid_t child, const std::filesystem::path& program,
                                            bool nothing_recorded) const;
  /// Processes that asked the driver for its version and left none of `reports`. `program` is `child`'s.
  std::vector<diagnose::IdleProcess> idle(pid_t child, const std::filesystem::path& program,
                                          const std::vector<std::filesystem::path>& reports) const;
  /// What processes said of their reports, in the order in which they did.
  const std::vector<Announced>& announced() const noexcept { return announced_; }
  /// The program of a process; empty where it was not seen.
  std::string exe_of(pid_t pid) const;
  /// Notes about processes that loaded the shim and a driver but wrote none of `reports`: the
  /// driver may have been there for nothing, or files went past the shim and the process ended without a
  /// word.
  std::vector<std::string> silent(const std::vector<std::filesystem::path>& reports) const;

 private:
  bool listen_in(const std::filesystem::path& folder);
  struct Seen {
    std::string exe;
    bool settled = false;
    bool shim = false;
  };
  struct Silent {
    std::string exe;
    std::vector<std::string> files;  ///< mapped for execution when the driver was first seen
    bool namespaces = false;         ///< there is more than one C library
  };
  void find_signs();
  void take_word(pid_t pid, std::string_view said);
  bool look_at(pid_t pid);
  void go_on();
  std::set<pid_t> reported_of(const std::vector<std::filesystem::path>& reports) const;

  std::filesystem::path folder_;
  std::string socket_path_;
  files::Descriptor fd_;
  files::Descriptor stop_;  ///< an eventfd, while the thread runs
  std::thread thread_;
  std::exception_ptr failure_;  ///< what ended the thread
  std::set<pid_t> alive_;
  std::vector<files::Descriptor> callers_;  ///< connections that have sent nothing yet
  std::vector<Announced> announced_;
  std::map<pid_t, int> asked_;  ///< what the driver answered, as cuDriverGetVersion counts
  std::map<pid_t, Seen> seen_;
  std::map<pid_t, diagnose::BlindProcess> blind_;        ///< use CUDA without the shim
  std::map<pid_t, Silent> silent_;                       ///< have the shim and a driver
  std::map<pid_t, diagnose::BlindProcess> unreachable_;  ///< whose loader does not take LD_PRELOAD
  std::map<pid_t, diagnose::BlindProcess> cleared_;      ///< whose environment does not name the shim
};

/// Processes below `root`, it excluded.
std::vector<pid_t> descendants(pid_t root);

}  // namespace kshim::run
