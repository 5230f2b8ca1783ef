// SPDX-License-Identifier: Apache-2.0
// The package that a file belongs to, as the package managers' own databases tell.
#pragma once

#include "analyzer/core/finding.h"
#include "analyzer/data/wheels.h"

namespace kshim::owner {

/// The Python that a package is installed for: a fix has to go there, and not to the `pip` that the shell
/// finds first.
struct PythonEnvironment {
  std::string prefix;       ///< of the virtual or conda environment; empty = not known
  std::string interpreter;  ///< its python, by path
  std::string site;         ///< its folder of packages; empty = not known, or not of this machine
  bool has_pip = true;
  bool conda = false;
  std::vector<std::pair<std::string, std::string>> installed;  ///< name and version of PyTorch's packages
  bool known() const { return !interpreter.empty(); }
  bool operator==(const PythonEnvironment&) const = default;
};

struct Package {
  std::string name;               ///< "torch", as its metadata writes it; for comparisons there is project()
  std::string version;            ///< "2.9.1"; of rpm with the release; empty where it is not known
  std::string manager;            ///< pip, conda, dpkg, rpm
  std::string build;              ///< of conda: "py3.11_cuda12.4_cudnn9.1.0_0"
  std::string channel;            ///< of conda: "conda-forge"
  std::string environment;        ///< prefix of the conda or virtual environment that the file lies in
  std::string installer;          ///< of a Python distribution: what its INSTALLER file says: "uv"
  std::string source;             ///< of what pip built here: what it takes to do so again: "-e /src/vllm"
  bool requested = false;         ///< by name, not as what another one needs
  std::vector<std::string> also;  ///< others of the same manager that list the file: "onnxruntime 1.20.1"
  data::ProjectName project() const { return name; }
  /// "torch 2.9.1".
  std::string label() const { return version.empty() ? name : name + " " + version; }
};

/// The headers of a METADATA or PKG-INFO file come first and end with an empty line: name and version, where
/// they are there.
void read_metadata(std::string_view text, Package& package);

/// Whether a text can be the name of a package of any manager: what else stands in its place may be an option
/// or an address to the command that it is put into.
bool is_package_name(std::string_view text);

/// As findings name it.
core::PackageName package_name(const Package& package);

}  // namespace kshim::owner
