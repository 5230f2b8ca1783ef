// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "analyzer/core/text.h"
#include "analyzer/owner/databases.h"

namespace kshim::owner {

device_code::ProcessAnswer ManagerProgram::ask(std::vector<std::string> arguments) {
  using Clock = std::chrono::steady_clock;
  if (left_.count() <= 0 || ::access(program_.c_str(), X_OK) != 0) return {};
  std::vector<char*> words = {program_.data()};
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  const char* const environment[] = {"LC_ALL=C", nullptr};
  const auto begin = Clock::now();
  device_code::ProcessAnswer answer = device_code::ask_in_own_process(
      [&](int out) {
        ::dup2(out, STDOUT_FILENO);
        ::execve(program_.c_str(), words.data(), const_cast<char* const*>(environment));
        return std::string();
      },
      {.patience = left_});
  left_ -= std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
  return answer;
}

std::optional<Package> RpmQuery::owner(const std::string& path) {
  const device_code::ProcessAnswer answer =
      rpm_.ask({"-qf", "--qf", "%{NAME} %|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE}\\n", "--", path});
  const std::size_t space = answer.text.find(' ');
  const std::size_t end = answer.text.find('\n');
  if (answer.status != 0 || end == std::string::npos || end < space) return std::nullopt;
  Package out;
  out.name = answer.text.substr(0, space);
  out.version = answer.text.substr(space + 1, end - space - 1);
  out.manager = "rpm";
  return is_package_name(out.name) ? std::optional(out) : std::nullopt;
}

std::optional<Package> DpkgQuery::owner(const std::vector<std::string>& names) {
  std::vector<std::string> question = {"-S", "--"};
  for (const std::string& name : names)  // others are patterns
    if (name.find_first_of("*?[\\\n") == std::string::npos) question.push_back(name);
  if (question.size() == 2) return std::nullopt;
  // "libc6:amd64, libc6:i386: /lib/x86_64-linux-gnu/libc.so.6"; the status is 1 where one of the names is
  // unknown.
  for (const std::string& line : core::split(dpkg_.ask(question).text, "\n")) {
    const std::size_t end = line.find(": /");
    if (end == std::string::npos || line.starts_with("diversion by ") ||
        !core::contains(names, line.substr(end + 2)))
      continue;
    const std::string binary = line.substr(0, std::min(line.find(", "), end));
    Package out;
    out.name = binary.substr(0, binary.find(':'));
    out.manager = "dpkg";
    if (!is_package_name(out.name)) continue;
    const auto [version, added] = versions_.try_emplace(binary);
    if (added) version->second = core::trim(dpkg_.ask({"-W", "-f", "${Version}\\n", "--", binary}).text);
    out.version = version->second;
    return out;
  }
  return std::nullopt;
}

}  // namespace kshim::owner
