// SPDX-License-Identifier: Apache-2.0
// What a visitor sees of a container, and a process of its own for containers that may eat memory or never
// end.
#pragma once
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "analyzer/input/files/container.h"
#include "container_fixture.h"
#include "tests/support/command_names.h"

namespace kshim::test {

struct Seen {
  std::vector<std::string> members;  // "name=contents"
  std::vector<std::string> damage;   // "name@offset: clause"
  std::vector<std::string> asked;    // names
};

inline ContainerVisitor visitor_of(Seen& seen) {
  ContainerVisitor visitor;
  visitor.wants = [&seen](std::string_view name, std::uint64_t) {
    seen.asked.emplace_back(name);
    return true;
  };
  visitor.visit = [&seen](const Member& member) {
    seen.members.push_back(member.name + "=" + std::string(text_of(member.bytes)));
  };
  visitor.damaged = [&seen](std::string_view name, std::uint64_t offset, const std::string& clause) {
    seen.damage.push_back(std::string(name) + "@" + std::to_string(offset) + ": " + clause);
  };
  return visitor;
}

inline Seen visit(const std::string& container, const std::string& name, const ContainerLimits& limits = {}) {
  Seen seen;
  const ContainerVisitor visitor = visitor_of(seen);
  each_member(bytes_of(container), name, limits, visitor);
  return seen;
}

// Shadow memory: no limit of addresses can be set. gcc says so by a macro, clang by a feature.
#if defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

/// `body` in a child that may map `megabytes` more than it has, and run for `seconds`. True when it ended
/// well.
template <class Body>
bool survives(std::uint64_t megabytes, unsigned seconds, const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(seconds);
    if (!kSanitized) {
      std::uint64_t pages = 0;
      if (FILE* file = std::fopen("/proc/self/statm", "r")) {
        if (std::fscanf(file, "%lu", &pages) != 1) ::_exit(3);
        std::fclose(file);
      }
      const rlim_t most = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + (megabytes << 20U);
      const rlimit limit{most, most};
      if (::setrlimit(RLIMIT_AS, &limit) != 0) ::_exit(3);
    }
    body();
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  return child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace kshim::test
