// SPDX-License-Identifier: Apache-2.0
// A terminal of CMD's own between it and ours, as sudo(8) makes one: in a session of its own, so that its
// Ctrl-C, Ctrl-Z and window size are that terminal's, and whatever opens /dev/tty gets it. A process of ours,
// the monitor, leads the session, as a group whose parent is of another session would not stop; and it goes
// on to copy what CMD's children write when this process has ended.
#pragma once
#include <poll.h>
#include <termios.h>

#include "analyzer/run/tail.h"
#include "kshim/files/open_file.h"

namespace kshim::run {

class TerminalRelay {
 public:
  /// nullptr where stdout and stderr are not our controlling terminal, or it cannot be opened.
  static std::unique_ptr<TerminalRelay> open();
  ~TerminalRelay();
  TerminalRelay(const TerminalRelay&) = delete;
  TerminalRelay& operator=(const TerminalRelay&) = delete;

  /// As fork(2), for the child of a child: `program` does not return. 0 and errno where there is none.
  pid_t start(const std::function<void()>& program);
  pid_t monitor() const noexcept { return monitor_; }
  void add_to(std::vector<pollfd>& fds) const;
  /// Moves what is there. `tail` gets CMD's output.
  void serve(Tail& tail);
  /// How CMD ended, as waitpid(2) says.
  std::optional<int> ended() const noexcept { return ended_; }
  void resize() const;
  /// When CMD has ended: the rest of its output, and the terminal as CMD left it.
  void finish(Tail& tail);

 private:
  struct Buffer {
    std::array<char, 16384> bytes{};
    std::size_t begin = 0;
    std::size_t end = 0;
    bool empty() const noexcept { return begin == end; }
    /// False where nothing comes any more.
    bool fill(int fd) noexcept;
    /// Line ends without the carriage return that the terminal adds.
    void end_lines_once() noexcept;
    /// False where nothing can be written any more.
    bool drain(int fd) noexcept;
  };

  TerminalRelay() = default;
  bool open_terminals();
  void look_at_the_job();
  void suspend(int signal, Tail& tail);
  void take_output(Tail& tail);
  void listen(Tail& tail);

  files::Descriptor tty_;      ///< ours, by a description of its own
  files::Descriptor master_;   ///< of CMD's
  files::Descriptor slave_;    ///< keeps it alive while nobody else has it open
  files::Descriptor control_;  ///< the monitor's words
  termios modes_{};            ///< as they were
  bool of_the_shell_ = false;  ///< `modes_` are a shell's own: CMD has not been in the foreground yet
  bool raw_ = false;           ///< ours is in raw mode, and its input is CMD's
  bool readable_ = true;
  std::array<bool, 3> streams_{};  ///< which of CMD's are the terminal
  pid_t monitor_ = 0;
  std::optional<int> ended_;
  Buffer input_;
  Buffer output_;
};

/// The same, and none of the standard streams: where those are closed, new descriptors get their numbers.
files::Descriptor above_streams(int fd);
/// In a child of fork: no other descriptor stays open. They become 0, 1 ... in this order.
void keep_only(std::span<const int> fds) noexcept;
/// In a process of our own that copies for CMD: it ends when CMD's last descriptor does, and not before.
void ignore_signals() noexcept;
/// All of it, however long that takes; false where nobody reads it.
bool write_all(int fd, std::span<const char> bytes) noexcept;

}  // namespace kshim::run
