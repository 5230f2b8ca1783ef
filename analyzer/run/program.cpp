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
#include "analyzer/device_code/elf_file.h"

namespace kshim::cli {
namespace {

namespace fs = std::filesystem;

bool exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

}  // namespace

fs::path find_program(const std::string& name) {
  const std::optional<fs::path> program = name.empty() ? std::nullopt : search_path(name);
  if (program.has_value()) return *program;
  const bool has_slash = name.find('/') != std::string::npos;
  const std::optional<fs::path> other =
      has_slash ? std::optional<fs::path>(name) : (name.empty() ? std::nullopt : find_in_path(name, exists));
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
