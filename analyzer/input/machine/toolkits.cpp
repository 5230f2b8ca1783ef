// SPDX-License-Identifier: Apache-2.0
// Installed toolkits, by the variables and folders that build systems look at, and Python environments with
// CUDA's wheels in them.
#include "analyzer/input/machine/facts.h"
#include "analyzer/owner/package.h"
#include "kshim/files/open_file.h"
#include "kshim/image/compiler_program.h"

namespace kshim::input {
using core::contains;

namespace {

constexpr std::size_t kMaxWheels = 200;

image::Version parse_version(std::string_view text) {
  const auto major = core::take_number<std::uint16_t>(text);
  if (!major || !text.starts_with('.')) return {};
  const auto minor = core::first_number<std::uint16_t>(text.substr(1));
  return minor ? image::Version{*major, *minor} : image::Version{};
}

/// "cuda" : { "name" : "CUDA SDK", "version" : "13.0.1" } in version.json, "CUDA Version 10.2.89" in
/// version.txt, and CUDART_VERSION in cuda_runtime_api.h where a packager left both out.
image::Version version_of_toolkit(const Machine& machine, const std::string& folder) {
  const std::string json = machine.read(join_path(folder, "version.json"));
  if (const std::size_t cuda = json.find("\"cuda\""); cuda != std::string::npos) {
    const std::size_t key = json.find("\"version\"", cuda);
    const std::size_t quote = key == std::string::npos ? key : json.find('"', json.find(':', key));
    if (quote != std::string::npos) return parse_version(std::string_view(json).substr(quote + 1));
  }
  const std::string text = machine.read(join_path(folder, "version.txt"));
  if (const std::size_t at = text.find("CUDA Version "); at != std::string::npos)
    return parse_version(std::string_view(text).substr(at + 13));
  for (const char* below : {"include", "targets/x86_64-linux/include", "targets/sbsa-linux/include"}) {
    const std::string header = machine.read(join_path(join_path(folder, below), "cuda_runtime_api.h"));
    constexpr std::string_view kDefine = "#define CUDART_VERSION";
    const std::size_t at = header.find(kDefine);
    if (at == std::string::npos) continue;
    const std::string_view rest = core::trim(std::string_view(header).substr(at + kDefine.size(), 32));
    return image::Version::from_cuda_number(core::first_number<int>(rest).value_or(0));
  }
  return {};
}

std::string parent(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return std::string(slash == std::string_view::npos || slash == 0 ? "/" : path.substr(0, slash));
}

bool is_cuda_wheel(std::string_view name) {
  for (const std::string_view prefix :
       {"nvidia-", "torch", "tensorflow", "jax", "cupy", "triton", "numba-cuda", "cuda-python",
        "cuda-bindings", "onnxruntime-gpu", "tensorrt", "vllm"})
    if (name.starts_with(prefix)) return true;
  return false;
}

void look_into(const Machine& machine, const std::string& folder, Python& python) {
  constexpr std::string_view kInfo = ".dist-info";
  for (const std::string& name : machine.names(folder)) {
    if (!name.ends_with(kInfo) || python.wheels.size() == kMaxWheels) continue;
    owner::Package package;
    read_metadata(machine.read(join_path(join_path(folder, name), "METADATA")), package);
    if (is_cuda_wheel(package.name)) python.wheels.push_back({package.name, package.version});
  }
  // nvidia/cublas/lib of CUDA 12's wheels, nvidia/cu13/lib of CUDA 13's.
  const std::string nvidia = join_path(folder, "nvidia");
  for (const std::string& name : machine.names(nvidia)) {
    const std::string libraries = join_path(join_path(nvidia, name), "lib");
    if (machine.is_folder(libraries)) python.library_folders.push_back(libraries);
  }
}

/// Version and maker of an environment: pyvenv.cfg (PEP 405; uv writes a line of its own), conda's history.
void describe(const Machine& machine, const std::string& prefix, Python& python) {
  const std::string config = join_path(prefix, "pyvenv.cfg");
  if (machine.is_folder(join_path(prefix, "conda-meta"))) {
    python.manager = "conda";
    for (const std::string& name : machine.names(join_path(prefix, "conda-meta"))) {
      // python-3.11.4-h955ad1f_0.json
      constexpr std::string_view kName = "python-";
      if (name.starts_with(kName) && name.size() > kName.size() && name[kName.size()] >= '0' &&
          name[kName.size()] <= '9')
        python.version = name.substr(kName.size(), name.find('-', kName.size()) - kName.size());
    }
  }
  if (!machine.is_file(config)) return;
  if (python.manager.empty()) python.manager = "venv";
  for (const std::string& line : core::split(machine.read(config), "\n")) {
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    const std::string_view key = core::trim(std::string_view(line).substr(0, equals));
    const std::string_view value = core::trim(std::string_view(line).substr(equals + 1));
    if (key == "uv") python.manager = "uv";
    if (key == "version" || key == "version_info") python.version = value;
  }
}

/// Which CUDA release the program is of; unknown where its file does not tell. It is read and not run.
image::Version version_of_compiler(const std::filesystem::path& path) {
  const files::OpenFile file = files::open_to_read(path);
  if (!file) return {};
  std::array<char, 65536> block;
  return image::compiler_release(
      [&](std::uint64_t offset, void* to, std::size_t size) {
        return files::read_at(file.fd.get(), offset, {static_cast<char*>(to), size}).value_or(0);
      },
      block);
}

}  // namespace

std::string in_path(const Machine& machine, std::string_view name) {
  for (const std::string& folder : core::split(machine.env("PATH"), ":")) {
    if (folder.substr(0, 1) != "/") continue;
    if (std::string path = join_path(folder, name); machine.is_executable(path)) return path;
  }
  return {};
}

std::vector<Toolkit> find_toolkits(const Machine& machine) {
  std::vector<Toolkit> found;
  const auto add = [&](std::string_view folder, std::string_view known_by) {
    const std::string real = machine.real(folder);
    if (real.empty() || !machine.is_folder(real)) return;
    for (Toolkit& toolkit : found) {
      if (toolkit.folder != real) continue;
      if (!contains(toolkit.known_by, known_by)) toolkit.known_by.emplace_back(known_by);
      return;
    }
    Toolkit toolkit{.folder = real,
                    .version = version_of_toolkit(machine, real),
                    .known_by = {std::string(known_by)},
                    .compiler = machine.is_executable(join_path(real, "bin/nvcc"))};
    if (toolkit.version.known() || toolkit.compiler) found.push_back(std::move(toolkit));
  };
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDAToolkit_ROOT"})
    add(machine.env(variable), variable);
  if (const std::string nvcc = machine.real(in_path(machine, "nvcc")); !nvcc.empty())
    add(parent(parent(nvcc)), "PATH");
  for (const std::string& name : machine.names("/usr/local"))
    if (name == "cuda" || name.starts_with("cuda-")) add("/usr/local/" + name, "/usr/local/" + name);
  add("/opt/cuda", "/opt/cuda");
  if (machine.is_executable("/usr/bin/nvcc")) add("/usr/lib/cuda", "/usr/bin/nvcc");
  add(machine.env("CONDA_PREFIX"), "CONDA_PREFIX");
  return found;
}

std::vector<Compiler> find_compilers(const Machine& machine, const std::vector<Python>& pythons) {
  std::vector<Compiler> out;
  const auto add = [&](std::string_view program, std::string path, std::string_view known_by) {
    if (!path.starts_with('/')) path = in_path(machine, path);
    if (path.empty() || !machine.is_executable(path)) return;
    // "Cuda compilation tools, release 12.8, V12.8.93"
    constexpr std::string_view kMark = "release ";
    constexpr std::size_t kMax = std::size_t{128} << 20;
    const std::string text = program == "c++" ? std::string() : machine.read(path, kMax);
    std::string version;
    for (std::size_t at = text.find(kMark); at != std::string::npos && version.empty();
         at = text.find(kMark, at + 1)) {
      const std::string_view rest = std::string_view(text).substr(at + kMark.size(), 32);
      const std::size_t v = rest.find(", V");
      if (v != std::string_view::npos && parse_version(rest).known())
        version = rest.substr(v + 3, rest.find_first_not_of("0123456789.", v + 3) - v - 3);
    }
    out.push_back({std::string(program), std::move(path), std::move(version), std::string(known_by)});
  };
  for (const char* program : {"nvcc", "ptxas", "tileiras"}) add(program, program, "PATH");
  for (const auto& [program, variable] :
       {std::pair{"nvcc", "CUDACXX"}, std::pair{"ptxas", "TRITON_PTXAS_PATH"}, std::pair{"c++", "NVCC_CCBIN"},
        std::pair{"c++", "CUDAHOSTCXX"}, std::pair{"c++", "CXX"}})
    if (const std::string_view path = machine.env(variable); !path.empty())
      add(program, std::string(path), variable);
  add("c++", "c++", "PATH");
  for (const Python& python : pythons)
    for (const std::string& folder : python.folders)
      add("ptxas", join_path(folder, "triton/backends/nvidia/bin/ptxas"), "triton");
  return out;
}

std::string environment_of(const Machine& machine, const std::string& name) {
  const std::string path = !contains(name, '/') ? in_path(machine, name) : name;
  const auto is_one = [&](const std::string& prefix) {
    return machine.is_file(join_path(prefix, "pyvenv.cfg")) ||
           machine.is_folder(join_path(prefix, "conda-meta"));
  };
  if (is_one(path)) return path;
  // The path itself and not what it links to: that is the Python which made the environment.
  const std::string prefix = parent(parent(path));
  if (prefix == "/") return {};
  // An interpreter has packages of its own, also where nobody made an environment: the system's, pyenv's.
  const bool interpreter = core::basename_of(path).starts_with("python") && machine.is_executable(path);
  return interpreter || is_one(prefix) ? prefix : std::string();
}

std::vector<Python> find_pythons(const Machine& machine, const std::string& only) {
  std::vector<Python> out;
  const auto add = [&](const std::string& prefix, const std::string& interpreter) {
    if (prefix.empty()) return;
    Python python;
    python.interpreter = interpreter;
    describe(machine, prefix, python);
    if (python.manager.empty() && prefix == "/usr") python.manager = "system";
    // Debian's Python has its own packages in python3, and pip's below /usr/local.
    for (const char* lib : {"lib", "lib64", "local/lib"}) {
      const std::string libraries = join_path(prefix, lib);
      for (const std::string& name : machine.names(libraries)) {
        if (!name.starts_with("python3")) continue;
        if (python.version.empty() && contains(name, '.'))
          python.version = name.substr(std::string_view("python").size());
        for (const char* site : {"site-packages", "dist-packages"}) {
          const std::string folder = machine.real(join_path(join_path(libraries, name), site));
          if (folder.empty() || contains(python.folders, folder)) continue;
          python.folders.push_back(folder);
          look_into(machine, folder, python);
        }
      }
    }
    if (!python.wheels.empty() || !only.empty()) out.push_back(std::move(python));
  };
  const auto environment = [&](std::string_view prefix) {
    if (!prefix.empty()) add(std::string(prefix), join_path(join_path(prefix, "bin"), "python3"));
  };
  if (!only.empty()) {
    environment(only);
    return out;
  }
  environment(machine.env("VIRTUAL_ENV"));
  environment(machine.env("CONDA_PREFIX"));
  std::string python = in_path(machine, "python3");
  if (python.empty()) python = in_path(machine, "python");
  // A virtual environment's interpreter is a link to the one it was made with: its packages are beside the
  // link.
  if (const std::string prefix = parent(parent(python));
      !python.empty() && prefix != machine.env("VIRTUAL_ENV") && prefix != machine.env("CONDA_PREFIX"))
    add(prefix, python);
  return out;
}

std::vector<CompilerProgram> find_compilers(const Machine& machine, std::string_view name,
                                            const std::string& packages) {
  std::vector<CompilerProgram> out;
  const auto look_in = [&](const std::string& folder) {
    for (const std::string_view tail : {"", "-blackwell"}) {
      const std::string path = machine.real(join_path(folder, std::string(name).append(tail)));
      if (path.empty() || !machine.is_executable(path) ||
          std::ranges::any_of(out, [&](const CompilerProgram& known) { return known.path == path; }))
        continue;
      if (const image::Version version = version_of_compiler(machine.at(path)); version.known())
        out.push_back({path, version});
    }
  };
  const auto look_in_packages = [&](const std::string& folder) {
    for (const char* below : {"nvidia/cu13/bin", "nvidia/cu13/nvvm/bin", "nvidia/cuda_nvcc/bin",
                              "nvidia/cuda_nvcc/nvvm/bin", "triton/backends/nvidia/bin"})
      look_in(join_path(folder, below));
  };
  for (const std::string& folder : core::split(machine.env("PATH"), ":"))
    if (folder.starts_with('/')) look_in(folder);
  for (const Toolkit& toolkit : find_toolkits(machine)) {
    look_in(join_path(toolkit.folder, "bin"));
    look_in(join_path(toolkit.folder, "nvvm/bin"));
  }
  if (!packages.empty()) look_in_packages(packages);
  for (const Python& python : find_pythons(machine))
    for (const std::string& folder : python.folders) look_in_packages(folder);
  return out;
}

}  // namespace kshim::input
