// SPDX-License-Identifier: Apache-2.0
// What each package manager says of a file.
#pragma once

#include "analyzer/device_code/own_process.h"
#include "analyzer/owner/bounded.h"
#include "analyzer/owner/package.h"
#include "kshim/base/bytes.h"

namespace kshim::owner {

// Which conda package a file belongs to, by the records in conda-meta/ of its environment (docs.conda.io,
// "Package metadata"). Each environment is read once.

class CondaEnvironments {
 public:
  explicit CondaEnvironments(LookupBudget& budget) : budget_(budget) {}
  /// The prefix of the environment that a path lies in: the next folder above it that has a conda-meta; empty
  /// where none has.
  const std::string& prefix(const std::string& path);
  std::optional<Package> owner(const std::string& path);

 private:
  struct Environment {
    std::vector<Package> packages;
    PathIndex files;
  };
  const Environment& environment(const std::string& prefix);
  LookupBudget& budget_;
  std::map<std::string, std::string> prefixes_;  ///< by folder
  std::map<std::string, Environment> environments_;
};

/// A package manager's own program, which alone reads all of its databases. Asked of files of the running
/// system.
class ManagerProgram {
 public:
  /// `program`: by its absolute path. `patience`: for all questions together; one takes about 20 ms.
  ManagerProgram(std::string program, std::chrono::milliseconds patience)
      : program_(std::move(program)), left_(patience) {}
  /// Not asked where it is not there, or the time is over. Its environment is empty but for the language.
  device_code::ProcessAnswer ask(std::vector<std::string> arguments);

 private:
  std::string program_;
  std::chrono::milliseconds left_;
};

inline constexpr std::chrono::milliseconds kManagerPatience = std::chrono::seconds(5);

/// Which Debian package a file belongs to: what `dpkg-query -S` says.
class DpkgQuery {
 public:
  explicit DpkgQuery(std::string program = "/usr/bin/dpkg-query",
                     std::chrono::milliseconds patience = kManagerPatience)
      : dpkg_(std::move(program), patience) {}
  /// `names`: all that the file is called, as names_of() gives them.
  std::optional<Package> owner(const std::vector<std::string>& names);

 private:
  ManagerProgram dpkg_;
  std::map<std::string, std::string> versions_;  ///< by "libc6:amd64"
};

/// Which rpm package a file belongs to: what `rpm -qf` says.
class RpmQuery {
 public:
  explicit RpmQuery(std::string program = "/usr/bin/rpm",
                    std::chrono::milliseconds patience = kManagerPatience)
      : rpm_(std::move(program), patience) {}
  std::optional<Package> owner(const std::string& path);

 private:
  ManagerProgram rpm_;
};

// Which Python distribution a file belongs to, by the RECORD files of its site-packages folder
// (packaging.python.org, "Recording installed projects"). Each folder is read once.

/// A path below a folder of installed Python packages.
struct SitePath {
  std::string folder;    ///< .../site-packages
  std::string relative;  ///< torch/lib/libtorch_cuda.so
};
std::optional<SitePath> site_path(std::string_view path);

class PythonDistributions {
 public:
  explicit PythonDistributions(LookupBudget& budget) : budget_(budget) {}
  /// nullopt for a file outside of such a folder, or one that no distribution there lists. Where a
  /// distribution has lost its RECORD, what is named like it is its own: "faiss_gpu_cu12.libs/...",
  /// "torch/...".
  std::optional<Package> owner(const std::string& path);
  /// The folder of installed packages that a path lies in is one that editable() looks into.
  /// False where it was known.
  bool note(const std::string& path);
  /// No folder is.
  void forget() { noted_.clear(); }
  /// Whose the source folder is that a file lies in, by what installers note in the folders that were named:
  /// the innermost. The distribution must list the module (top_level.txt), or list none and the file be an
  /// extension module of Python's by its name.
  std::optional<Package> editable(const std::string& path);

 private:
  struct Distribution {
    std::string folder;  ///< "torch-2.9.1.dist-info"
    bool recorded = false;
  };
  struct Site {
    std::vector<Distribution> distributions;
    PathIndex files;
  };
  const Site& site(const std::string& folder);
  bool add_record(const std::string& folder, const std::string& name, PathIndex::Owner owner,
                  PathIndex& files);
  Package describe(const std::string& folder, const Distribution& distribution);
  std::size_t choose(const std::string& folder, const Site& site, const std::vector<PathIndex::Owner>& owners,
                     const std::string& path);
  struct Editable {
    std::string site;  ///< that notes it
    std::string folder;
    Package package;
    std::vector<std::string> modules;
  };
  void find_editables(const std::string& folder);
  std::optional<Package> by_name(const SitePath& place, const Site& site);

  LookupBudget& budget_;
  std::map<std::string, Site> sites_;
  std::set<std::string> noted_;
  std::set<std::string> searched_;  ///< noted now or earlier
  std::vector<Editable> editables_;
};

/// "libfaiss" of .../faiss_gpu_cu12.libs/libfaiss-1a2b3c4d.so.1: a library that a wheel brings a copy of, in
/// the folder and under the name that auditwheel gives it. Empty for every other path.
std::string vendored_library(std::string_view path);

/// Name and version of a wheel or conda package by its file's name; empty for other names.
Package package_of_archive(std::string_view path);

/// A conda package by its info/index.json.
Package package_of_conda_index(std::string_view json);

/// The environment that a file is installed in, which lies in a folder of installed packages. `prefix` is
/// that of the environment, where it is known; then nothing need be there to look at. `conda`: the package is
/// one of conda's.
PythonEnvironment python_environment(const std::string& file, const std::string& prefix, bool conda);

/// The environment that a program lies in: PREFIX/bin/python, PREFIX/bin/torchrun.
PythonEnvironment environment_of_program(const std::filesystem::path& program);

/// The folders of NVIDIA's wheels in an environment.
std::vector<std::string> library_folders(const PythonEnvironment& environment);
/// The folder of NVIDIA's wheels in an environment that has a library, by its whole name
/// ("libcusolver.so.11") or without the number ("libcupti.so"). Empty: none has it.
std::string library_folder(const PythonEnvironment& environment, std::string_view name);

// What an installer notes of a distribution that came from no index: direct_url.json (PEP 610).

/// How a source begins that is installed editable.
inline constexpr std::string_view kEditable = "-e ";

/// What `pip install` takes to build the same again: "-e /src/vllm" of an editable installation, "/src/vllm"
/// of a folder, "git+https://github.com/o/r@COMMIT#subdirectory=x" of a repository. Empty for a finished
/// wheel or an archive, for an address with anything in it that an address of these kinds does not have, and
/// for no JSON. A name or password in the address is left out.
std::string source_of_direct_url(std::string_view json);

/// Whether a text, of a report, is of the shape of these.
bool is_source(std::string_view text);

/// The folder of such a source; empty where it is a repository.
std::string folder_of_source(std::string_view source);

}  // namespace kshim::owner
