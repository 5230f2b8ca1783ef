// SPDX-License-Identifier: Apache-2.0
// What files are built for, and whether that runs on given GPUs: what `kshim scan` calls. The names are those
// of the scan JSON (docs/schema/scan.json).
#pragma once

#include "analyzer/advise/fleet.h"
#include "analyzer/device_code/object_file.h"
#include "analyzer/diagnose/coverage.h"
#include "analyzer/input/files/walk.h"
#include "analyzer/input/machine/facts.h"
#include "analyzer/owner/package.h"

namespace kshim::verbs {

/// The package of a file, and the Python that it is installed for.
struct Owner {
  owner::Package package;  ///< without a name where none is known
  owner::PythonEnvironment python;
};

struct Expectation;

struct ScanRequest {
  std::vector<image::Arch> targets;          ///< compute capabilities to judge for
  image::Version driver;                     ///< CUDA version of the driver to judge for; unknown = newest
  bool kernels = false;                      ///< read payloads and name kernels
  bool sizes = false;                        ///< say what takes the bytes; asks for kernels too
  bool sha256 = false;                       ///< hash files with device code, which reads all of them
  const Expectation* expectation = nullptr;  ///< what the files are held to; nullptr: nothing
  unsigned jobs = 0;                         ///< threads; 0 = one a core
  std::filesystem::path root =
      "/";  ///< whose packages the files belong to; another one than ours of a process
  /// Whose file it is: asked of each file with device code that is in no archive, from one thread at a time.
  std::function<Owner(const std::string& path)> owner;
  /// Called now and then, from one thread at a time, with bytes done and in all.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;
};

/// What a kernel takes in the images of one architecture; where several modules hold the name, the most that
/// any does. kUnknown of image::KernelInfo where the image does not say, as PTX, which is compiled later.
struct KernelNeeds {
  std::string arch;                ///< sm_80, compute_90
  std::uint32_t registers = 0;     ///< a thread
  std::uint32_t shared_bytes = 0;  ///< static, a block
  std::uint32_t local_bytes = 0;   ///< a thread: stack and spilled registers
  std::uint32_t max_threads = 0;   ///< a block, by __launch_bounds__; unknown: as many as the device takes
  std::uint64_t code_bytes = 0;    ///< machine code, of all modules together
};

struct ScannedKernel {
  std::string name;  ///< mangled
  std::string demangled;
  std::vector<KernelNeeds> images;         ///< cubins first, each kind by architecture
  std::vector<std::string> archs() const;  ///< of those
};

/// What a module takes.
struct ModuleSize {
  std::uint64_t offset = 0;  ///< of its fatbin in the file
  std::uint64_t images = 0;
  std::uint64_t stored = 0;  ///< bytes in the file
  std::uint64_t bytes = 0;   ///< uncompressed
  std::string kernel;        ///< the first in it, mangled, where kernels were read
};

/// How an object does against what it is meant to have.
struct Expected {
  std::string list;    ///< "7.5 9.0a 12.0+PTX"
  std::string source;  ///< where that stands: "pyproject.toml:12", "--expect"
  std::string reason;  ///< of a rule for files of this name
  bool skipped = false;
  std::vector<std::string> missing = {};  ///< "sm_120", "compute_90 or sm_90"
  std::vector<std::string> surplus = {};
  bool met() const { return missing.empty() && surplus.empty(); }
};

/// Bytes that something takes against its budget.
struct BudgetUse {
  std::string name;  ///< of the file or wheel
  std::string of;    ///< "file", "wheel", "9.0a"
  std::uint64_t bytes = 0;
  std::uint64_t limit = 0;
};

struct ScannedObject {
  std::string path;
  std::string member;  ///< inside `path` where that is an archive or wheel; else empty
  std::string build_id;
  std::string sha256;  ///< with ScanRequest::sha256
  std::string format;  ///< "ELF x86-64", "PE x86-64", "fatbin", "cubin", "PTX", "LTO-IR"
  core::PackageName package;
  bool requested = false;   ///< the package was, by name, not as what another one needs
  std::uint64_t bytes = 0;  ///< of the file or member
  std::uint64_t fatbins = 0;
  std::uint64_t modules = 0;
  std::uint64_t kernel_modules = 0;  ///< of those, with kernels that a driver is to load
  std::vector<device_code::ImageCount> images;
  std::optional<std::vector<ScannedKernel>> kernels;  ///< with ScanRequest::kernels
  image::Version runtime;  ///< major version of the CUDA runtime that it runs with, where known
  std::vector<diagnose::TargetVerdict> targets;  ///< in the order of ScanRequest::targets
  std::vector<ModuleSize> largest;               ///< modules, the largest first; the first few
  std::optional<Expected> expected;              ///< where the file is held to a list
  std::string name() const { return member.empty() ? path : path + "!" + member; }
};

/// An image of a container: its layers' files are objects whose member is the path in the image.
struct ScannedImage {
  std::string path;      ///< of the archive or folder
  std::string name;      ///< "vllm/vllm:0.32"; empty where nothing names it
  std::string platform;  ///< "linux/amd64"; empty where nothing says
  std::string base;      ///< the image that it names as its base, else its system: "Ubuntu 24.04.3 LTS"
  std::size_t layers = 0;
};

/// A file or member that kshim cannot read: device code may be in it or not.
struct UnreadFile {
  std::string path;
  std::string member;  ///< as ScannedObject::member
  std::string kind;    ///< "SQLite database", ".engine file"
  std::uint64_t bytes = 0;
  std::string name() const { return member.empty() ? path : path + "!" + member; }
};

struct Scan {
  std::vector<std::string> paths;  ///< that were named
  std::vector<image::Arch> targets;
  image::Version driver;
  std::vector<ScannedObject> objects;    ///< with device code only, by name
  std::vector<core::Finding> findings;   ///< most severe first; Finding::object is ScannedObject::name()
  std::vector<advise::FleetPlan> fleet;  ///< of files that lack code for a target
  std::vector<std::string> companions;   ///< packages with kernels that a fetched wheel needs, unread
  std::vector<ScannedImage> images;      ///< of containers
  std::vector<input::ReadNote> notes;    ///< what could not be read, and where
  std::vector<UnreadFile> unread;        ///< of kinds that are not read, by kind and name
  std::optional<input::RunningProcess> process;  ///< whose mapped files they are
  std::vector<input::Check> checks;              ///< what is wrong with it, besides its files
  std::vector<std::string> newer;  ///< what the answer depends on and the tables do not have yet
  std::uint64_t files = 0;         ///< looked at
  std::uint64_t bytes = 0;         ///< of those
  std::map<std::string, std::uint64_t> file_bytes;  ///< of each, by ScannedObject::path; no folders
  std::uint64_t duplicates = 0;                     ///< other names of files already counted
  bool nothing_readable = false;
  bool held = false;   ///< to what was expected
  bool sizes = false;  ///< to say what takes the bytes
  std::vector<BudgetUse> budget;
  /// Something that was named to scan(), or a part of it, could not be read: no verdict on it.
  bool named_unread = false;
  bool incomplete() const { return !notes.empty() || !unread.empty(); }
  /// No verdict on what was named: a part of it was not read, or nothing was found in what was.
  bool undecided() const { return named_unread || (objects.empty() && !unread.empty()); }
};

/// Scan::notes, and one for each kind of Scan::unread.
std::vector<input::ReadNote> all_notes(const Scan& scan);

/// Files, folders, archives, wheels, Python environments. What cannot be read becomes a note.
Scan scan(const std::vector<std::filesystem::path>& paths, const ScanRequest& options);
/// Files that were chosen already.
Scan scan(input::Inputs inputs, const ScanRequest& options);

}  // namespace kshim::verbs
