// SPDX-License-Identifier: Apache-2.0
// Which program or project a line of a log is of, by paths, prompts, prefixes and images.
#include <re2/re2.h>

#include <cctype>

#include "analyzer/core/text.h"
#include "analyzer/data/frames.h"
#include "analyzer/input/log/clues.h"

namespace kshim::input {
using core::to_lower;

namespace {

// `words` has a blank before and behind each.
bool is_one(std::string_view words, std::string_view part) {
  return !part.empty() && part.find(' ') == std::string_view::npos &&
         words.find(fmt::format(" {} ", to_lower(part))) != std::string_view::npos;
}

// Where people and builders put sources.
constexpr std::string_view kPlaces =
    " . .. ~ home root usr opt tmp work workspace build mnt data local users projects repo repos git "
    "github app apps code dev project cmake software builds temp content kaggle working desktop "
    "documents downloads programs appdata ai scratch media storage volume nvme disk ssd public srv var "
    "bin install notebooks miniconda3 anaconda3 miniconda anaconda miniforge3 mambaforge .pyenv conda "
    "python_embeded venv .venv env envs windows system32 test tests "
    "cpp c++ python rust native ops modules extensions server backend model models scripts tools gpfs "
    "lustre sandbox ";
constexpr std::string_view kFolders = " src csrc source sources include lib cuda kernels gpu core ";
// What holds the sources of others.
constexpr std::string_view kOfOthers =
    " external third_party third-party deps extern vendor submodules subprojects site-packages aten c10 "
    "_deps ";

// Names that any program may have, tools, and words that stand before lines of any program.
constexpr std::string_view kNoNames =
    " python python3 pip pip3 uv conda mamba poetry make cmake ninja gcc nvcc cargo git cd ls cat echo "
    "export source set sudo apt apt-get dnf yum docker podman kubectl bash sh zsh ssh srun sbatch "
    "mpirun torchrun env which grep find tail head less nano vim chmod mkdir rm cp mv ln ldd ldconfig "
    "nm readelf objdump strings cuobjdump nvidia-smi nvidia-settings lspci lsmod modinfo dmesg "
    "journalctl systemctl uname lsb_release jupyter ipython wget curl tar unzip top htop nvtop gdb "
    "strace compute-sanitizer cuda-memcheck nsys ncu devicequery web app api worker server service main "
    "backend frontend gpu cuda kernel engine model test tests run start launch train infer inference "
    "demo rank0 info warn warning error debug fatal trace notice stdout stderr root user default "
    "container node a.out program exe build install configure activate deactivate exit time accelerate "
    "deepspeed code date module kshim pwd history clear dir type where pytest npm node.exe wsl "
    "powershell cmd rank pod init systemd local docker-compose bazel meson mpiexec ctest perl java go "
    "julia matlab rscript yarn man tee sed awk xargs brew pacman yay snap flatpak winver setx whoami "
    "hostname ps kill free df du lshw lscpu glxinfo vulkaninfo inxi neofetch nvidia-container-cli "
    "nvidia-ctk update-alternatives g++ clang clang++ cl ptxas nvprof host watch screen tmux "
    "su stat file tree open ";

std::string without_branch(std::string name) {
  static const RE2 kBranch(R"((?i)[-_]v?(?:master|main|dev|develop|\d[\w.]*)$)");
  RE2::Replace(&name, kBranch, "");
  return name.size() >= 3 && std::ranges::any_of(name, [](unsigned char c) { return std::isalpha(c) != 0; })
             ? name
             : std::string();
}

// "build-ampere", "cmake-build-debug".
bool is_build_folder(std::string_view lower) {
  return lower.starts_with("build-") || lower.starts_with("build_") || lower.starts_with("cmake-build");
}

// "speaches" of ghcr.io/speaches-ai/speaches:latest-cuda.
std::string name_of_image(std::string_view image) {
  if (image.empty() || is_base_image(image)) return {};
  image = image.substr(image.rfind('/') + 1);
  return std::string(image.substr(0, image.find(':')));
}

const ProgramMention* last_before(const LogFacts& clues, data::ClueKind by, std::uint64_t line) {
  const ProgramMention* out = nullptr;
  for (const ProgramMention& each : clues.programs)
    if (each.by == by && (out == nullptr || each.line <= line)) out = &each;
  return out;
}

}  // namespace

bool is_base_image(std::string_view image) {
  constexpr std::string_view kBases[] = {"nvidia/cuda",
                                         "ubuntu",
                                         "debian",
                                         "python",
                                         "alpine",
                                         "condaforge/",
                                         "continuumio/",
                                         "nvcr.io/nvidia/cuda",
                                         "nvcr.io/nvidia/l4t-base",
                                         "runpod/base"};
  return std::ranges::any_of(kBases, [&](std::string_view base) { return image.starts_with(base); });
}

std::string program_of_word(std::string_view word) {
  word = word.substr(word.find_last_of("/\\") + 1);
  for (const std::string_view end : {".exe", ".service", ".bat", ".sh"})
    if (word.ends_with(end)) word.remove_suffix(end.size());
  static const RE2 kScript(
      R"(.*\.(?:py|pl|rb|jl|js|ts|log|txt|yml|yaml|json|out|so|o)|[\d.:-]+|.{0,2}|.{40,})");
  static const RE2 kNumbered(R"((.*?)[-_]\d+)");
  const re2::StringPiece text(word.data(), word.size());
  std::string name(word);
  RE2::FullMatch(text, kNumbered, &name);
  if (RE2::FullMatch(name, kScript) || is_one(kNoNames, name)) return {};
  return name;
}

std::string project_of_path(std::string path) {
  std::ranges::replace(path, '\\', '/');
  std::vector<std::string> parts = core::split(path, "/");
  // A script in the folder where it was started says nothing.
  if (parts.size() > 1 && parts.back().find('.') != std::string::npos &&
      program_of_word(parts.back()).empty())
    parts.pop_back();
  if (parts.size() == 1 && path.find('.') != std::string::npos && program_of_word(path).empty()) return {};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string lower = to_lower(parts[i]);
    // What follows is installed there, and no project's own; the first folder of a user's is its name.
    if (lower == "site-packages" || lower == "dist-packages" || lower.starts_with("python3.") ||
        lower == "lib" || lower == "lib64")
      return {};
    if (lower.starts_with('<')) return {};  // "<stdin>"
    // One of several environments, and a folder that was made for one, unless a table knows its name.
    if (i != 0 && (to_lower(parts[i - 1]) == "envs" || to_lower(parts[i - 1]) == "versions")) continue;
    if (i + 1 < parts.size() && is_one(" venv .venv env .env ", parts[i + 1]) &&
        software_of(parts[i]).empty())
      continue;
    const bool user =
        i != 0 && (to_lower(parts[i - 1]) == "home" || to_lower(parts[i - 1]) == "users") && i <= 2;
    if (user || lower.empty() || lower == "program files" || is_one(kPlaces, lower) ||
        is_one(kFolders, lower) || lower.ends_with(':') || is_build_folder(lower))
      continue;
    return is_one(kNoNames, lower) ? std::string() : without_branch(parts[i]);
  }
  return {};
}

std::string project_in(const std::string& line) {
  static const RE2 kAssertion(R"(^(?:.*\s)?([A-Za-z][\w.+-]*): \S+:\d+: .*\bAssertion\b)");
  static const RE2 kSource(
      R"(((?:[A-Za-z]:)?[\w.@+~-]*(?:[/\\][\w.@+~-]+)+)[/\\][\w.+-]+\.(?:cuh?|inl|[ch](?:pp|xx|c)?|hh|cc)\b)");
  std::string name;
  std::string path;
  if (RE2::PartialMatch(line, kAssertion, &name)) return name;
  if (!RE2::PartialMatch(line, kSource, &path)) return {};
  std::ranges::replace(path, '\\', '/');
  const std::vector<std::string> parts = core::split(path, "/");
  if (std::ranges::any_of(parts, [](const std::string& part) { return is_one(kOfOthers, part); })) return {};
  std::size_t at = parts.size();
  const auto conda = std::ranges::find(parts, "conda-bld");
  if (const auto host = std::ranges::find(parts, "github.com"); parts.end() - host > 2) {
    at = static_cast<std::size_t>(host - parts.begin()) + 2;
  } else if (parts.end() - conda > 1) {  // of conda-build: libmath_1600000000000
    at = static_cast<std::size_t>(conda - parts.begin()) + 1;
  } else {
    const bool of_user = parts.size() > 1 && (parts[1] == "home" || to_lower(parts[1]) == "users");
    for (std::size_t i = 1; i < parts.size() && at == parts.size(); ++i)
      if (is_one(kFolders, parts[i]) && !parts[i - 1].empty() && !is_one(kPlaces, parts[i - 1]) &&
          !is_one(kFolders, parts[i - 1]) && !(of_user && i == 3 && parts[0].empty()))
        at = i - 1;
  }
  return at == parts.size() ? std::string() : without_branch(parts[at]);
}

std::string program_around(const LogFacts& clues, const LogMatch& hit) {
  if (!hit.speaker.empty()) return hit.speaker;
  if (std::string name = name_of_image(clues.container_image); !name.empty()) return name;
  for (const core::Place& frame : hit.frames)
    if (data::owner_of_python(frame.file, frame.function) == data::FrameOwner::user)
      if (std::string name = project_of_path(frame.file); !name.empty()) return name;
  const ProgramMention* folder = last_before(clues, data::ClueKind::folder, hit.line);
  return folder == nullptr ? std::string() : folder->name;
}

std::string program_at_work(const LogFacts& clues, const LogMatch& hit) {
  if (!hit.project.empty()) return hit.project;
  if (!hit.speaker.empty()) return hit.speaker;
  if (!hit.frames.empty())
    if (std::string name = package_that_called(clues, hit); !name.empty()) return name;
  if (const ProgramMention* command = last_before(clues, data::ClueKind::command, hit.line))
    return command->name;
  return program_around(clues, hit);
}

}  // namespace kshim::input
