// SPDX-License-Identifier: Apache-2.0
// What reports are judged by, beside what stands in them: what the caller asks for, and what it saw.
#pragma once

#include "analyzer/core/prelude.h"
#include "kshim/image/select.h"

namespace kshim::diagnose {

/// A process that was not watched, or not all of it: the shim did not come to life there although it should
/// have, as `kshim run` found out, or files went past it, as the report says.
struct BlindProcess {
  long pid = 0;
  std::string exe;
  std::string reason;  ///< a clause: "it is statically linked"
};

/// A process that asked the driver for its version and did not initialize it, as `kshim run` found out.
struct IdleProcess {
  long pid = 0;
  std::string exe;
  image::Version driver;
};

/// A library that the dynamic linker did not find for a program, which it then ended, as `kshim run` found
/// out.
struct MissingLibrary {
  std::string program;
  std::string name;       ///< "libcublas.so.12"
  std::string needed_by;  ///< the program, or a library of it
  std::string folder;     ///< that has it, and is not looked through; empty = none is known
  bool of_cuda = false;
  bool operator==(const MissingLibrary&) const = default;
};

/// How a program ended; neither is set where nobody saw it.
struct Ending {
  std::optional<int> status = {};
  std::optional<int> signal = {};
  bool known() const { return status || signal; }
  bool failed() const { return signal || status.value_or(0) != 0; }
  /// "3", "signal 11".
  std::string text() const {
    return signal ? fmt::format("signal {}", *signal) : std::to_string(status.value_or(0));
  }
};

/// What `kshim run` knows of the program and its processes, and no report does.
struct RunFacts {
  std::vector<BlindProcess> blind;
  std::vector<IdleProcess> idle;
  std::vector<MissingLibrary> missing;
  std::string driverless;  ///< a program with device code that failed where there is no libcuda.so.1
  std::function<std::string(long pid)> exe_of;  ///< the program of a process; empty: it was not seen
  std::vector<std::string> notes;               ///< what else there is to say
  Ending ending;                                ///< of the program
  long pid = 0;                                 ///< its process
  std::filesystem::path last_report;            ///< that this process began
  std::string words;              ///< the last that the program and its children wrote to stderr
  bool heard = false;             ///< whether anybody listened
  std::filesystem::path started;  ///< the program as it was named, which tells a virtual environment
  std::string again;              ///< the command that does it again and shows all there is to the findings
  std::vector<image::ComputeCapability> simulated;  ///< the GPUs
  bool no_kernel_module = false;  ///< the GPUs are simulated, and this machine has no driver of its own
  std::string driver_log;         ///< what the driver wrote into the file that CUDA_LOG_FILE names
  std::filesystem::path driver_log_path;
  std::optional<image::ComputeCapability> first_simulated() const {
    return simulated.empty() ? std::nullopt : std::optional(simulated.front());
  }
};

struct Scene;

struct AnalysisOptions {
  std::vector<image::Arch> targets;
  std::optional<image::ComputeCapability> assume_cc;  ///< judge for this GPU instead of the recorded ones
  std::optional<image::Version> assume_driver;
  std::optional<image::Version> assume_toolkit;
  std::filesystem::path root = "/";  ///< where the databases of packages are looked up
  std::chrono::steady_clock::duration patience =
      std::chrono::seconds(30);  ///< with the files of reports, for each of their owners
  bool keep_private = false;     ///< `~` of a private report stays: what is made of it is kept or shared
  bool trust_reports = false;    ///< those of other users, and the sources that reports name, as one's own
  /// What a sentence says in place of how long these modules of the report took, by their order.
  using Duration = std::function<std::string(std::span<const std::uint32_t> modules)>;
  Duration duration = {};
  /// Called between reports, in the caller's thread, with the bytes read so far and those to read in all.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;
  /// Called with each report that was judged, while its files are open.
  std::function<void(const Scene&)> judged;
};

}  // namespace kshim::diagnose
