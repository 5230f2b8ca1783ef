// SPDX-License-Identifier: Apache-2.0
// A report in memory: kshim-report/1 as include/kshim/report/schema.def lists it, with the line each record
// stands on. Optional fields that are absent, null or of a wrong type are empty.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kshim::analysis {

struct ImageEntry {
  std::string kind;
  std::string arch;
  std::string isa;
  std::uint64_t count = 1;
  std::uint64_t bytes = 0;
};
struct Layer {
  std::string layer;
  std::string api;
  int code = 0;
  std::string name;
};
struct NativeFrame {
  std::string object;
  std::string build_id;
  std::uint64_t offset = 0;
  std::string symbol;
};
struct PythonFrame {
  std::string file;
  unsigned line = 0;
  std::string function;
};

/// A process as another one's record names it.
struct ProcessEntry {
  std::uint64_t pid = 0, start = 0;
  std::string exe;
};

struct Record {
  std::uint32_t line = 0;  ///< in the file, from 1
  bool operator==(const Record&) const = default;
};
struct ProcessRecord : Record {
  std::string shim, run, host, uid, time, exe, cwd;
  std::uint64_t pid = 0, start = 0, ppid = 0;
  std::optional<unsigned> rank;
  std::optional<std::uint64_t> sample;
  bool hidden = false;  ///< written with KSHIM_PRIVATE
  std::vector<std::string> argv;
  std::map<std::string, std::string> env, job;
};
struct DriverRecord : Record {
  std::string path, cuda_version, kernel_module;
  bool simulated = false;
};
struct DeviceRecord : Record {
  unsigned ordinal = 0;
  std::string name, compute_capability, uuid, pci;
};
struct ObjectRecord : Record {
  std::uint64_t id = 0;
  std::string path, build_id, runtime;
  std::optional<std::uint64_t> fatbins;
  std::optional<std::vector<ImageEntry>> images;
};
struct ModuleRecord : Record {
  std::uint64_t id = 0;
  std::optional<std::uint64_t> object, offset, size;
  std::optional<unsigned> device;
  std::string content_hash, api, selected, toolkit;
  int result = 0;
  std::optional<bool> jit;
  double ms = 0;
};
/// Milliseconds that the driver may compile in one process: more is worth a warning.
constexpr double kNoticeableJit = 1000;

struct FailureRecord : Record {
  std::uint64_t id = 0, count = 1;
  std::string stage, kernel;
  std::vector<Layer> layers;  ///< innermost first
  std::optional<unsigned> device;
  std::optional<std::uint64_t> module, object;
  std::vector<NativeFrame> native;
  std::vector<PythonFrame> python, python_main;
  /// The failure whose frames these are, where the record names one; filled in by the reader
  /// (record_parser.h).
  std::optional<std::uint64_t> native_of, python_of, python_main_of;
  std::string asked, compiler;      ///< of a compiler library: the architecture, the library's version
  std::vector<std::string> known;   ///< what it compiles for, where it tells
  std::string jit_log, driver_log;  ///< what the driver itself says
};
/// The caller that asked for the error that a failure had left.
struct ReadRecord : Record {
  std::uint64_t failure = 0;
  std::string api;
  int code = 0;
  std::optional<std::uint64_t> object;
  std::vector<NativeFrame> native;
  std::vector<PythonFrame> python;
};
struct GapRecord : Record {
  std::optional<std::uint64_t> object, offset;
  std::optional<unsigned> device;
  std::vector<std::string> kernels, have;
  std::optional<std::uint64_t> total;  ///< kernels, where `kernels` may name a few of them
  bool complete = false;
  std::string need;
};
struct LibraryRecord : Record {
  std::string soname, path, version, build_id;
  bool operator==(const LibraryRecord&) const = default;
};
struct BypassRecord : Record {
  std::string path, how;
  std::vector<std::string> names;
};
struct PackageRecord : Record {
  std::uint64_t object = 0;
  std::string name, version, manager, build, channel, environment, source;
};
struct ExitRecord : Record {
  std::optional<unsigned> status, signal;
};
/// A kernel that was launched; one row however many lines speak of it.
struct CoverageRecord : Record {
  std::string kernel;
  std::optional<std::uint64_t> object, module;
  std::uint64_t launches = 0;
};
/// The process is a compiler that failed.
struct CompilerRecord : Record {
  std::string program, version, path, input_isa;
  std::vector<std::string> asked;
  unsigned status = 0;
  std::vector<ProcessEntry> parent;  ///< its parent, that one's parent ...
};
struct ChildRecord : Record {
  std::uint64_t pid = 0;
  std::optional<unsigned> status, signal;
  std::vector<PythonFrame> python, python_main;
};
struct EndRecord : Record {
  std::uint64_t failures = 0, modules = 0, dropped = 0;
};

/// What was odd about a report: a sentence, and the line that it is about (0: the whole).
struct ReportNote {
  std::uint32_t line = 0;
  std::string text;
};

struct Report {
  std::string path;
  std::uint32_t owner = 0;  ///< of the file: its user id
  bool foreign = false;     ///< the file is of another user (neither the caller nor root), or linked
  bool linked = false;      ///< a link of another user leads to the file
  ProcessRecord process;
  std::optional<DriverRecord> driver;
  std::vector<DeviceRecord> devices;
  std::vector<ObjectRecord> objects;
  std::vector<ModuleRecord> modules;
  std::vector<FailureRecord> failures;
  std::vector<ReadRecord> reads;
  std::vector<GapRecord> gaps;
  std::vector<LibraryRecord> libraries;
  std::vector<BypassRecord> bypasses;
  std::vector<PackageRecord> packages;
  std::vector<CoverageRecord> coverage;
  std::optional<CompilerRecord> compiler;
  std::vector<ChildRecord> children;
  std::optional<ExitRecord> exit;
  std::optional<EndRecord> end;
  std::uint64_t missing = 0;      ///< records that its shim wrote and that cannot be read here any more
  std::vector<ReportNote> notes;  ///< what was odd about the file
  std::size_t kept = 0;           ///< bytes of memory that the records take, about
};

}  // namespace kshim::analysis
