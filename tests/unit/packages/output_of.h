// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdio>
#include <memory>
#include <string>

namespace kshim::test {

/// What a shell command prints, without the line breaks at its end.
inline std::string output_of(const std::string& command) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string out;
  char part[4096];
  while (const std::size_t got = std::fread(part, 1, sizeof(part), pipe.get())) out.append(part, got);
  while (out.ends_with('\n')) out.pop_back();
  return out;
}

}  // namespace kshim::test
