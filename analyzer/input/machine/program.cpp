// SPDX-License-Identifier: Apache-2.0
// One program: what would run in the end, what it is linked to, and what keeps the shim out of it.
#include <algorithm>
#include <set>

#include "analyzer/device_code/elf_file.h"
#include "analyzer/input/machine/gather.h"

namespace kshim::doctor {
namespace {

constexpr int kScriptDepth = 5;           // Linux follows at most 5
constexpr std::size_t kMostFiles = 2000;  // of one program's libraries

struct DeepbindUser {
  std::string_view name;
  std::string_view source;
};
constexpr DeepbindUser kDeepbindUsers[] = {
#define KSHIM_DEEPBIND_USER(name, source) {name, source},
#include "analyzer/input/machine/deepbind_users.def"
#undef KSHIM_DEEPBIND_USER
};

std::string_view file_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

/// `#!/usr/bin/env -S NAME ...`: what env(1) starts.
std::string started_by_env(const Machine& machine, std::string_view argument) {
  if (argument.substr(0, 3) == "-S ") argument.remove_prefix(3);
  return in_path(machine, argument.substr(0, argument.find(' ')));
}

/// The last file of the chain; its interpreters are added to `program`.
std::optional<cli::Executable> follow(const Machine& machine, Program& program) {
  for (int depth = 0; depth <= kScriptDepth; ++depth) {
    if (!machine.is_file(program.path)) return std::nullopt;
    auto executable = cli::inspect(machine.at(program.path));
    if (!executable || executable->kind != cli::Executable::Kind::script) return executable;
    program.chain.push_back(program.path);
    program.path = executable->interpreter;
    if (file_name(program.path) == "env" && !executable->argument.empty()) {
      std::string started = started_by_env(machine, executable->argument);
      if (!started.empty()) program.path = std::move(started);
    }
  }
  return std::nullopt;
}

struct Open {
  std::string path;
  analysis::ElfFacts file;
};

/// Everything that is loaded before the program's own code runs, breadth first as the linker does it.
void walk_libraries(const Machine& machine, const Loader& loader, const Open& first, Program& program) {
  std::vector<Open> files = {first};
  std::set<std::string> seen;
  for (std::size_t i = 0; i < files.size() && files.size() < kMostFiles; ++i) {
    const Open asking = files[i];
    if (asking.file.names_dlmopen) program.dlmopen.push_back(asking.path);
    for (const std::string& name : asking.file.needed) {
      if (!seen.insert(name).second) continue;
      const auto found = loader.find(name, asking.path, &asking.file);
      // ld.so itself is there before anything is searched for.
      if (!found && !name.starts_with("ld-linux")) program.missing.push_back(name + ", for " + asking.path);
      if (!found) continue;
      const auto file = analysis::elf_facts(machine.at(found->path));
      if (is_cuda_library(name)) program.libraries.push_back({name, *found, version_in_name(found->real)});
      if (file) files.push_back({found->path, *file});
    }
  }
}

}  // namespace

Program look_at_program(const Machine& machine, const Loader& loader, const std::string& name) {
  Program program;
  program.path = name.find('/') == std::string::npos ? in_path(machine, name) : name;
  if (program.path.empty()) {
    program.path = name;
    return program;
  }
  const auto executable = follow(machine, program);
  program.found = executable.has_value();
  if (!program.found) return program;
  program.elf = executable->kind == cli::Executable::Kind::elf;
  const auto file = analysis::elf_facts(machine.at(program.path));
  program.library = program.elf && file && file->same_class && file->is_library;
  if (!program.library) program.blind = cli::blind_reason(*executable);
  for (const DeepbindUser& user : kDeepbindUsers)
    if (file_name(program.path) == user.name) program.deepbind = user.source;
  if (file && file->same_class && (program.library || !executable->loader.empty()))
    walk_libraries(machine, loader, {program.path, *file}, program);
  return program;
}

}  // namespace kshim::doctor
