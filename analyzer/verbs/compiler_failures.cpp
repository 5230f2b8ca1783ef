// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/compiler_failures.h"

#include <unistd.h>

#include "analyzer/advise/advice.h"
#include "analyzer/data/knowledge_file.h"
#include "analyzer/diagnose/compilers.h"
#include "analyzer/input/machine/facts.h"
#include "kshim/image/compiler_program.h"
#include "kshim/report/trusted_folder.h"

namespace kshim::verbs {
using core::contains;
using core::EvidenceId;
using diagnose::CompilerFacts;
using input::ProcessEntry;
using input::Report;

namespace {

constexpr std::size_t kMaxFailures = 4096;
constexpr std::size_t kMaxProcesses = 65536;

// A build starts its compilers through these.
bool is_between(std::string_view program) {
  static constexpr std::string_view kNames[] = {"sh",    "bash",   "dash", "ninja", "make",   "gmake",
                                                "cmake", "ccache", "env",  "nvcc",  "timeout"};
  return contains(kNames, program);
}

// What a process has loaded code of.
std::string software_of(const Report& report) {
  for (const input::ObjectRecord& object : report.objects) {
    if (contains(object.path, "/triton/")) return "triton";
    if (contains(object.path, "/cuda/tile/")) return "cuda-tile";
    if (contains(object.path, "/jaxlib/") || contains(object.path, "/jax_cuda")) return "jax";
  }
  return {};
}

// The first of what was asked for that the compiler's release does not know; else any of them.
image::Arch refused_arch(const input::CompilerRecord& record, const CompilerFacts& facts) {
  image::Arch first;
  const data::ToolkitRow* row = data::find_toolkit(facts.version);
  for (const std::string& name : record.asked) {
    const auto arch = image::parse_arch(name);
    if (!arch) continue;
    if (row != nullptr && !diagnose::compiles_for(facts.name, *row, *arch)) return *arch;
    if (first.cc.major == 0) first = *arch;
  }
  return first;
}

std::string version_text(const CompilerFacts& facts) {
  return facts.version.known() ? fmt::format("{} {}", facts.name, name(facts.version)) : facts.name;
}

}  // namespace

void CompilerFailures::note(const Report& report, std::optional<std::uint32_t> process) {
  const input::ProcessRecord& here = report.process;
  if (std::string software = software_of(report); !software.empty() && software_.size() < kMaxProcesses)
    software_.try_emplace({here.host, here.pid, here.start}, std::move(software));
  if (!report.compiler || failures_.size() == kMaxFailures) return;
  Failure failure{{}, process};
  failure.report.path = report.path;
  failure.report.foreign = report.foreign;
  failure.report.process = here;
  failure.report.compiler = report.compiler;
  failures_.push_back(std::move(failure));
}

void CompilerFailures::judge(FindingTable& findings) {
  // nvcc fails because a ptxas that it started did: that one says why.
  std::set<Process> above;
  for (const Failure& failure : failures_)
    for (const ProcessEntry& parent : failure.report.compiler->parent)
      above.emplace(failure.report.process.host, parent.pid, parent.start);
  for (const Failure& failure : failures_) {
    const input::ProcessRecord& process = failure.report.process;
    if (above.count({process.host, process.pid, process.start}) != 0) continue;
    if (auto finding = finding_of(failure)) findings.add(std::move(*finding), failure.process);
  }
}

// What started it: not a shell or a build tool, which only passes the work on.
const ProcessEntry* CompilerFailures::starter_of(const Report& report) {
  const std::vector<ProcessEntry>& parents = report.compiler->parent;
  const auto starter = std::ranges::find_if(
      parents, [](const ProcessEntry& parent) { return !is_between(core::basename_of(parent.exe)); });
  if (parents.empty()) return nullptr;
  return starter == parents.end() ? &parents.front() : &*starter;
}

std::string CompilerFailures::software_above(const Report& report) const {
  for (const ProcessEntry& parent : report.compiler->parent) {
    const auto found = software_.find({report.process.host, parent.pid, parent.start});
    if (found != software_.end()) return found->second;
  }
  return {};
}

// What decides which program is taken; empty where nothing does.
std::string CompilerFailures::selecting_variable(const Report& report, const std::string& software) const {
  const input::CompilerRecord& compiler = *report.compiler;
  const auto names_it = [&](const char* variable) {
    const auto set = report.process.env.find(variable);
    return set != report.process.env.end() && set->second == compiler.path;
  };
  for (const char* variable : {"TRITON_PTXAS_BLACKWELL_PATH", "TRITON_PTXAS_PATH"})
    if (names_it(variable)) return variable;
  if (software == "triton" || contains(compiler.path, "/triton/backends/nvidia/bin/"))
    return compiler.program == "ptxas-blackwell" ? "TRITON_PTXAS_BLACKWELL_PATH" : "TRITON_PTXAS_PATH";
  if (software == "jax") return "XLA_FLAGS";
  return !contains(compiler.path, "/site-packages/") ? "CUDA_HOME" : "";
}

void CompilerFailures::find_other(const Report& report, CompilerFacts& facts) const {
  if (report.foreign || !is_of_this_machine(report)) return;
  constexpr std::string_view kPackages = "/site-packages/";
  const std::size_t at = facts.path.find(kPackages);
  const std::string packages =
      at == std::string::npos ? std::string() : facts.path.substr(0, at + kPackages.size() - 1);
  const std::string plain = facts.name.substr(0, facts.name.find('-'));
  constexpr unsigned kFirstOfTriton35 = 13;
  const auto& owner = files_.packages().of(facts.path);
  const bool old_triton =
      owner && owner->name == "triton" && data::compare_releases(owner->version, "3.5") < 0;
  for (const input::CompilerProgram& program :
       find_compilers(input::Machine(options_.root, input::own_environment()), plain, packages)) {
    CompilerFacts other = facts;
    other.version = program.version;
    const data::ToolkitRow* row = data::find_toolkit(program.version);
    if (program.path == facts.path || row == nullptr || refused_by_program(other)) continue;
    // To select a compiler is to run it.
    struct stat status {};
    const auto place = options_.root / std::filesystem::path(program.path).relative_path();
    if (::stat(place.c_str(), &status) != 0 || report::is_another_user(status.st_uid, ::geteuid())) continue;
    // Triton reads the compiler's release, and refuses a major version that it does not know.
    if (old_triton && program.version.major >= kFirstOfTriton35) continue;
    // Triton's folder is no toolkit.
    if (!facts.selects.starts_with("TRITON_") && contains(program.path, "/triton/")) continue;
    // The oldest that does: what called the compiler may not know newer releases.
    if (!facts.other.empty() && !(program.version < facts.other_version)) continue;
    facts.other = program.path;
    facts.other_version = program.version;
  }
}

std::optional<core::Finding> CompilerFailures::finding_of(const Failure& failure) {
  const Report& report = failure.report;
  const input::CompilerRecord& record = *report.compiler;
  CompilerFacts facts;
  facts.name = record.program;
  facts.path = record.path;
  if (const auto version = image::parse_version(record.version)) facts.version = *version;
  if (const auto isa = image::parse_version(record.input_isa)) facts.input_isa = *isa;
  facts.asked = refused_arch(record, facts);
  const auto match = refused_by_program(facts);
  if (!match) return std::nullopt;
  const ProcessEntry* const by = starter_of(report);
  const std::string software = software_above(report);
  facts.selects = selecting_variable(report, software);
  find_other(report, facts);

  core::Finding out;
  out.cause = core::Cause::nvrtc_arch_unsupported;
  const bool went_well = run_.ending.known() && !run_.ending.failed();
  out.severity = went_well ? core::Severity::info : row_of(out.cause).severity;
  out.confidence = match->confidence;
  out.near = core::Near::call;
  out.object = record.path;
  if (const auto& package = files_.packages().of(record.path))
    out.package = diagnose::package_name(diagnose::record_of(*package, 0));
  if (facts.asked.cc.major != 0) out.need = sm_name(facts.asked);
  const data::ToolkitRow* row = data::find_toolkit(facts.version);
  const bool by_isa =
      row != nullptr && (out.need.empty() || diagnose::compiles_for(facts.name, *row, facts.asked));
  out.headline = by_isa ? fmt::format("{} does not read PTX of ISA {}", version_text(facts),
                                      image::to_name(facts.input_isa).view())
                        : fmt::format("{} does not compile for {}", version_text(facts), out.need);
  if (row != nullptr)
    out.have = core::mapped(diagnose::is_tile_compiler(facts.name) ? row->tile_targets : row->targets,
                            [](image::Arch arch) { return sm_name(arch); });
  const core::ReportLine line = diagnose::location(report, record.line);
  out.failures.push_back(line);
  out.evidence.push_back({EvidenceId::compiler_ended,
                          fmt::format("{} ended with status {}.", record.path, record.status),
                          line,
                          {{"program", record.program},
                           {"path", record.path},
                           {"version", record.version},
                           {"status", std::to_string(record.status)}}});
  out.evidence.push_back(
      {EvidenceId::rule, match->because + ".", line, {{"cause", std::string(row_of(out.cause).name)}}});
  if (by != nullptr)
    out.evidence.push_back(
        {EvidenceId::started_by,
         fmt::format("{} (process {}) started it.", by->exe.empty() ? "A program" : by->exe, by->pid),
         line,
         {{"program", by->exe}, {"pid", std::to_string(by->pid)}}});
  if (const std::string version = name(facts.other_version); !facts.other.empty())
    out.evidence.push_back(
        {EvidenceId::other_compiler,
         fmt::format("{} of CUDA {} is on this machine and takes it.", facts.other, version),
         {},
         {{"path", facts.other}, {"version", version}}});
  diagnose::Facts at;
  at.cause = out.cause;
  at.file.path = out.object;
  if (!data::known_project(out.package.name).empty()) at.package.name = out.package.name;
  at.package.version = out.package.version;
  at.package.software = software;
  at.process.python = by != nullptr && core::basename_of(by->exe).starts_with("python");
  at.call.compiler = std::move(facts);
  if (!report.foreign) out.about = std::make_shared<const diagnose::Facts>(std::move(at));
  return out;
}

}  // namespace kshim::verbs
