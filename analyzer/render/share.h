// SPDX-License-Identifier: Apache-2.0
// Pages made to be shown to strangers (Markdown, HTML): without the names of users and machines.
#pragma once

#include "analyzer/core/prelude.h"

namespace kshim::render {

/// Shortens in any text:
/// - a home folder to `~`: $HOME, /root, /home/NAME, /Users/NAME, these below one more folder
/// (/mnt/home/NAME) too, and
///   WSL's /mnt/c/Users/NAME. Every user's is `~`: a second name would be one to hide as well.
/// - a GPU's UUID to its first 8 digits: GPU-558b273a.
/// - the host names it was told to `host`, or `host1`, `host2` ... where there are several.
class Shortener {
 public:
  /// `home` as $HOME says it; may be empty.
  Shortener(std::vector<std::string> hosts, std::string home);
  static Shortener for_user(std::vector<std::string> hosts);  ///< with this process's $HOME

  std::string text(std::string_view text) const;
  /// A home is `$HOME`, so that a POSIX shell still finds it, within single quotes too.
  std::string command(std::string_view command) const;

 private:
  std::string shorten_rest(std::string_view text) const;
  /// The host whose name the word at the text's begin is, longest name first; end() for none.
  std::map<std::string, std::string, std::less<>>::const_iterator host_in(std::string_view text) const;
  std::map<std::string, std::string, std::less<>> hosts_;  ///< and what is shown for them
  std::string home_;
};

/// Program and script of an argument list: what others may see of it.
std::vector<std::string> program_and_script(const std::vector<std::string>& arguments);

}  // namespace kshim::render
