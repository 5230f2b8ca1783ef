// SPDX-License-Identifier: Apache-2.0
// What a report itself says, for tables: `facts` of a line of `kshim analyze --format jsonl`.
#pragma once

#include "analyzer/input/report/report.h"
#include "analyzer/verbs/analysis.h"
#include "analyzer/verbs/report_files.h"

namespace kshim::verbs {

/// A file as `kshim scan` lists it.
struct ReportedFile {
  std::string path;
  std::string build_id;
  core::PackageName package;
  std::optional<std::vector<input::ImageEntry>> images;  ///< those that the report lists, else the file's
};

/// The loads of one file with one result.
struct ReportedLoads {
  std::optional<std::size_t> file;      ///< of ReportFacts::files
  std::string content_hash;             ///< of code that came from memory
  std::optional<std::uint64_t> device;  ///< ordinal; empty where several were used
  std::uint64_t result = 0;
  bool jit = false;
  std::string selected;  ///< empty where several were
  std::uint64_t count = 0;
  std::uint64_t microseconds = 0;
};

struct ReportedFailure {
  std::uint64_t id = 0;
  std::optional<std::size_t> finding;  ///< of Analysis::findings, which explains it
  std::string stage;
  std::optional<int> code;  ///< of the innermost layer
  std::string name;
  std::string kernel;  ///< mangled
  std::optional<std::size_t> file;
  std::string compute_capability;
  std::string python_file;
  std::optional<unsigned> python_line;
  std::uint64_t count = 1;
};

struct ReportedKernel {
  std::string kernel;  ///< mangled
  std::optional<std::size_t> file;
  std::string content_hash;
  std::uint64_t launches = 0;
};

struct ReportFacts {
  std::string time;  ///< of the process' start
  std::uint64_t start = 0;
  std::uint64_t ppid = 0;
  std::string run;
  std::string uid;
  bool hidden = false;  ///< KSHIM_PRIVATE
  std::string job, account, queue;
  std::string shim;
  std::string driver, kernel_module;
  std::optional<bool> simulated;
  std::uint64_t modules = 0;
  std::optional<int> compiler_status;
  // Of the report's file.
  std::uint64_t owner = 0;
  bool foreign = false;                   ///< it is another user's
  std::int64_t changed = 0, arrived = 0;  ///< seconds since 1970; the owner sets the first one alone
  std::vector<ReportedFile> files;
  std::vector<ReportedLoads> loads;
  std::vector<std::size_t> load_of;  ///< which of them each module of the report is part of
  std::vector<ReportedFailure> failures;
  std::vector<ReportedKernel> kernels;
  std::vector<input::ReportNote> damage;
};

/// Of a report that was judged with `of`.
ReportFacts facts_of(const input::Report& report, const Analysis& analysis, const ReportFile& file,
                     input::ObjectFiles& of);

/// The part that is the process' own, whatever the others are.
void identify(const input::Report& report, const ReportFile& file, ReportFacts& out);

std::uint64_t microseconds(double ms);

}  // namespace kshim::verbs
