// SPDX-License-Identifier: Apache-2.0
// From reports to findings and fixes: what `kshim analyze` and `kshim run` call.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/advise/fleet.h"
#include "analyzer/core/finding.h"
#include "kshim/image/arch.h"

namespace kshim::analysis {

enum class Format : std::uint8_t {
#define KSHIM_FORMAT(id) id,
#include "analyzer/render/formats.def"
#undef KSHIM_FORMAT
};
inline constexpr std::array kFormats = {
#define KSHIM_FORMAT(id) Format::id,
#include "analyzer/render/formats.def"
#undef KSHIM_FORMAT
};
/// nullopt for a name that is none of those formats.
std::optional<Format> parse_format(std::string_view name, std::span<const Format> of = kFormats);
/// "text, json": for messages and help.
std::string format_names(std::span<const Format> of = kFormats);

/// A process that was not watched, or not all of it: the shim did not come to life there although it should
/// have, as `kshim run` found out, or files went past it, as the report says.
struct BlindProcess {
  long pid = 0;
  std::string exe;
  std::string reason;  ///< a clause: "it is statically linked"
};

/// A process that asked the driver for its version and did not initialise it, as `kshim run` found out.
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
};

struct Options {
  std::vector<image::Arch> targets;
  std::optional<image::ComputeCapability> assume_cc;  ///< judge for this GPU instead of the recorded ones
  std::optional<image::Version> assume_driver;
  std::optional<image::Version> assume_toolkit;
  std::filesystem::path root = "/";  ///< where the databases of packages are looked up
  bool trust_reports = false;    ///< those of other users, and the sources that reports name, as one's own
  bool record_packages = false;  ///< add what is found there to the reports
  std::vector<BlindProcess> blind;
  std::vector<IdleProcess> idle;
  std::vector<MissingLibrary> missing;
  std::string
      driverless;  ///< a program with device code that failed where there is no libcuda.so.1; else empty
  std::vector<std::string> notes;  ///< what else the caller has to say
  std::optional<int> exit_status;  ///< of the program, where the caller ran it
  std::optional<int> term_signal;
  /// Called between reports, in the caller's thread, with the bytes read so far and those to read in all.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;
};

enum class Verdict : std::uint8_t { ok, gap, failure, no_cuda, blind, incomplete };
std::string_view to_name(Verdict verdict);

struct DeviceSummary {
  std::string host;
  unsigned ordinal = 0;
  std::string name;
  std::optional<image::ComputeCapability> cc;
  std::string uuid;
  std::string pci;
  std::string driver_cuda;    ///< "13.0"
  std::string kernel_module;  ///< "580.82.07"
  bool simulated = false;
  unsigned findings = 0;  ///< of severity error that name it
};

struct ProcessSummary {
  std::string report;  ///< path of the report
  std::string run;     ///< that it belongs to; empty where nothing says so
  std::string host;
  long pid = 0;
  std::optional<unsigned> rank;
  std::string exe;
  std::vector<std::string> argv;
  unsigned failures = 0;
  unsigned modules = 0;
  bool complete = false;   ///< has an `end` record
  std::uint64_t lost = 0;  ///< records that its shim could not write, or that cannot be read any more
  bool damaged = false;    ///< some of them were written
};

/// The processes of one run; those that name none together.
struct RunSummary {
  std::string id;
  std::uint64_t processes = 0;
  std::uint64_t hosts = 0;
  std::uint64_t ranks = 0;       ///< distinct
  std::uint64_t failed = 0;      ///< processes with a failure
  std::uint64_t incomplete = 0;  ///< without an `end` record
};

struct Analysis {
  Verdict verdict = Verdict::no_cuda;
  std::vector<DeviceSummary> devices;
  std::vector<ProcessSummary> processes;
  std::vector<RunSummary> runs;
  std::vector<Finding> findings;   ///< most severe and most certain first
  std::vector<FleetPlan> fleet;    ///< of files that lack code for one of several GPUs
  std::vector<std::string> notes;  ///< torn lines, unreadable files, what was assumed
  std::vector<BlindProcess> blind;
  std::optional<int> exit_status;
  std::optional<int> term_signal;
  bool nothing_readable = false;
};

/// Reads reports and folders of them. What cannot be read becomes a note.
Analysis analyze(const std::vector<std::filesystem::path>& reports_or_folders, const Options& options);

struct RenderOptions {
  bool colour = false;   ///< ECMA-48 colours
  bool unicode = false;  ///< UTF-8 beyond ASCII may be written
  unsigned width = 80;
  bool verbose = false;
  bool whole_commands = false;  ///< of another shell than sh: a backslash at a line's end continues nothing
  bool full = false;            ///< do not shorten home, host and UUID in what is made to be shared
};
std::string render(const Analysis& analysis, Format format, const RenderOptions& options);

/// Severity::none where there is no finding.
Severity worst(const Analysis& analysis);

}  // namespace kshim::analysis
