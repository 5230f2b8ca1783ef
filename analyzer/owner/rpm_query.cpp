// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "analyzer/device_code/own_process.h"
#include "analyzer/owner/databases.h"

namespace kshim::owner {

std::optional<Package> RpmQuery::owner(const std::string& path) {
  using Clock = std::chrono::steady_clock;
  if (left_.count() <= 0 || ::access(program_.c_str(), X_OK) != 0) return std::nullopt;
  const char* const arguments[] = {
      program_.c_str(), "-qf",  "--qf", "%{NAME} %|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE}\\n", "--",
      path.c_str(),     nullptr};
  const char* const environment[] = {"LC_ALL=C", nullptr};
  const auto begin = Clock::now();
  const ProcessAnswer answer = ask_in_own_process(
      [&](int out) {
        ::dup2(out, STDOUT_FILENO);
        ::execve(program_.c_str(), const_cast<char* const*>(arguments),
                 const_cast<char* const*>(environment));
        return std::string();
      },
      {.patience = left_});
  left_ -= std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
  const std::size_t space = answer.text.find(' ');
  const std::size_t end = answer.text.find('\n');
  if (answer.status != 0 || end == std::string::npos || end < space) return std::nullopt;
  Package out;
  out.name = answer.text.substr(0, space);
  out.version = answer.text.substr(space + 1, end - space - 1);
  out.manager = "rpm";
  return is_package_name(out.name) ? std::optional(out) : std::nullopt;
}

}  // namespace kshim::owner
