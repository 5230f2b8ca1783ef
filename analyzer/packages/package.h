// SPDX-License-Identifier: Apache-2.0
// Who put a file where it is, as the package managers' own databases tell.
#pragma once
#include <string>
#include <vector>

namespace kshim::packages {

struct Package {
  std::string name;               ///< "torch"
  std::string version;            ///< "2.9.1"; of rpm with the release; empty where it is not known
  std::string manager;            ///< pip, conda, dpkg, rpm, or what made a bundle: pyinstaller
  std::string build;              ///< of conda: "py3.11_cuda12.4_cudnn9.1.0_0"
  std::string channel;            ///< of conda: "conda-forge"
  std::string environment;        ///< prefix of the conda or virtual environment that the file lies in
  std::string installer;          ///< of a Python distribution: what its INSTALLER file says: "uv"
  std::vector<std::string> also;  ///< others of the same manager that list the file: "onnxruntime 1.20.1"
  /// "torch 2.9.1".
  std::string label() const { return version.empty() ? name : name + " " + version; }
};

}  // namespace kshim::packages
