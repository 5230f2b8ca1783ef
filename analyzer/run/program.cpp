// SPDX-License-Identifier: Apache-2.0
#include "analyzer/run/program.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>

#include "analyzer/core/user_error.h"

namespace kshim::cli {
namespace {

namespace fs = std::filesystem;

bool is_executable(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

/// The first file in PATH that `accept` takes.
template <class Accept>
std::optional<fs::path> first_in_path(const std::string& name, Accept accept) {
  const char* variable = std::getenv("PATH");
  // What execvp(3) searches without PATH.
  std::string_view folders = variable != nullptr ? variable : "/bin:/usr/bin";
  while (true) {
    const std::size_t colon = folders.find(':');
    const std::string_view folder = folders.substr(0, colon);
    fs::path path = folder.empty() ? fs::path(".") / name : fs::path(folder) / name;
    if (accept(path)) return path;
    if (colon == std::string_view::npos) return std::nullopt;
    folders.remove_prefix(colon + 1);
  }
}

bool exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

}  // namespace

std::optional<fs::path> search_path(const std::string& name) {
  if (name.find('/') != std::string::npos)
    return is_executable(name) ? std::optional<fs::path>(name) : std::nullopt;
  return first_in_path(name, is_executable);
}

fs::path find_program(const std::string& name) {
  const std::optional<fs::path> program = name.empty() ? std::nullopt : search_path(name);
  if (program.has_value()) return *program;
  const bool has_slash = name.find('/') != std::string::npos;
  const std::optional<fs::path> other =
      has_slash ? std::optional<fs::path>(name) : (name.empty() ? std::nullopt : first_in_path(name, exists));
  if (!other.has_value()) {
    throw UserError(fmt::format("{}: not found in PATH", name.empty() ? "''" : name), exit_status::kNotFound);
  }
  std::error_code error;
  const fs::file_status status = fs::status(*other, error);
  if (status.type() == fs::file_type::not_found) {
    throw UserError(fmt::format("{}: no such file", other->string()), exit_status::kNotFound);
  }
  if (status.type() == fs::file_type::directory) {
    throw UserError(fmt::format("{}: is a folder, not a program", other->string()),
                    exit_status::kNotExecutable);
  }
  if (error) {
    throw UserError(fmt::format("{}: {}", other->string(), error.message()), exit_status::kNotExecutable);
  }
  throw UserError(fmt::format("{}: not executable; `chmod +x` it, or name its interpreter", other->string()),
                  exit_status::kNotExecutable);
}

}  // namespace kshim::cli
