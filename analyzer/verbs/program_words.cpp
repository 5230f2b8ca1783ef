// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/program_words.h"

#include <re2/re2.h>

#include "analyzer/advise/commands.h"
#include "analyzer/advise/wheel_choice.h"
#include "analyzer/core/text.h"
#include "analyzer/data/cuda_versions.h"
#include "analyzer/data/knowledge.h"
#include "analyzer/device_code/elf_file.h"
#include "analyzer/diagnose/about.h"
#include "analyzer/diagnose/aftermath.h"
#include "analyzer/diagnose/failure_finding.h"
#include "analyzer/diagnose/program.h"
#include "analyzer/diagnose/scene.h"
#include "analyzer/input/log/log_text.h"
#include "analyzer/input/log/miner.h"
#include "analyzer/owner/bounded.h"
#include "analyzer/owner/databases.h"
#include "analyzer/owner/distributions.h"
#include "analyzer/owner/finder.h"
#include "analyzer/verbs/last_words.h"
#include "analyzer/verbs/log_finding.h"

namespace kshim::verbs {
using core::Cause;
using core::contains;
using core::Evidence;
using core::EvidenceId;
using core::Finding;
using core::Severity;
using core::to_lower;
using diagnose::Facts;
using input::LogMatch;

namespace {

/// Below, words are a guess that accuses nobody.
constexpr double kSaid = 0.5;
constexpr int kNoDevice = 100;

input::LogFacts facts_in(std::string_view text) {
  input::LogParser parser;
  input::LogText lines([&](std::string_view line) { parser.line(line); }, true);
  lines.take(text);
  lines.finish();
  return parser.take();
}

/// A file of an installed Python package, which tells the environment.
std::string installed_file(const input::Report& report) {
  const auto is_installed = [](const auto& row) {
    return contains(row.path, "/site-packages/") || contains(row.path, "/dist-packages/");
  };
  if (const auto found = std::ranges::find_if(report.objects, is_installed); found != report.objects.end())
    return found->path;
  const auto found = std::ranges::find_if(report.libraries, is_installed);
  return found == report.libraries.end() ? std::string() : found->path;
}

/// "cublas" of libcublasLt.so.13, "cudnn" of libcudnn_ops.so.9.
std::string family_of(std::string_view path) {
  std::string name = to_lower(core::basename_of(path));
  name = name.substr(0, name.find_first_of("._-"));
  if (name.starts_with("lib")) name.erase(0, 3);
  if (name.ends_with("lt")) name.resize(name.size() - 2);
  while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.pop_back();
  return name;
}

/// A library refuses the GPU, and so does what printed the line: one refusal, where the line is the
/// library's.
bool is_of_another_library(const Finding& said, const Finding& known, const LogMatch& line) {
  if (said.cause != Cause::library_refuses || known.cause != Cause::library_refuses) return false;
  const std::string family = family_of(known.object);
  return !family.empty() && !contains(to_lower(line.who), family) && !contains(to_lower(line.quote), family);
}

bool is_same_failure(const Finding& said, const Finding& known, const LogMatch& line) {
  if (is_of_another_library(said, known, line)) return false;
  return said.cause == known.cause || (is_image_cause(said.cause) && is_image_cause(known.cause)) ||
         (said.code && said.code == known.code);
}

/// What was concluded from the way in which the program ended.
bool is_by_ending(const Finding& finding) {
  return std::ranges::any_of(finding.evidence,
                             [](const Evidence& row) { return row.id == EvidenceId::ended_silently; });
}

/// Of simulated GPUs, where no driver is: what of it the lines ask for. Empty: nothing is named.
std::string asks_for_module(std::string_view words, const owner::PythonEnvironment& environment) {
  static const RE2 kFile(R"((/dev/nvidia[\w-]*|/proc/driver/nvidia)[^\n]*)");
  static const RE2 kProgram(
      R"((?i)(nvidia-smi)[^\n]*(?:not found|no such file|fail|could ?n[o']t|unable|error|returned))");
  static const RE2 kCupti(R"((?i)cupti[^\n]*(?:\b999\b|NOT_INITIALIZED|UNKNOWN))");
  std::string found;
  if (RE2::PartialMatch(words, kFile, &found) || RE2::PartialMatch(words, kProgram, &found)) return found;
  // It gives the same code where its file is missing.
  const bool there = !library_folder(environment, "libcupti.so").empty();
  return there && RE2::PartialMatch(words, kCupti) ? "CUPTI" : "";
}

/// A path of an installed package that the lines name: of a traceback, the last.
std::string installed_file_in(std::string_view words) {
  static const RE2 kPath(R"((/[^\s"':]+/(?:site|dist)-packages/[^\s"':]+))");
  std::string found;
  re2::StringPiece rest(words);
  for (std::string path; RE2::FindAndConsume(&rest, kPath, &path);) found = std::move(path);
  return found;
}

/// What the files show of it.
void take_files(Finding& known, Finding& said, Facts& at) {
  for (Evidence& row : known.evidence)
    if (row.id != EvidenceId::ended_silently) said.evidence.push_back(std::move(row));
  said.object = known.object;
  said.build_id = known.build_id;
  said.package = known.package;
  said.kernels = known.kernels;
  said.kernels_complete = known.kernels_complete;
  said.kernels_total = known.kernels_total;
  said.have = known.have;
  said.images = known.images;
  said.need = known.need;
  if (said.devices.empty()) said.devices = known.devices;
  if (!at.package.name.empty() || !known.about) return;
  at.package.name = known.about->package.name;
  at.package.version = known.about->package.version;
  at.package.manager = known.about->package.manager;
  at.package.environment = known.about->package.environment;
  at.file.path = known.object;
}

/// Whether the finding is of a library whose own file has nothing for the GPU.
bool is_by_file(const Finding& known) {
  return known.cause == Cause::library_refuses && !known.object.empty() && !known.images.empty();
}

/// A line of a log that its writer took for no error.
bool is_of_no_error(std::string_view line) {
  static const RE2 kLevel(R"((?:^|[\s\[(:|])(?:INFO|DEBUG|TRACE)\b)");
  return RE2::PartialMatch(line, kLevel);
}

Evidence said_in(const LogMatch& hit) {
  return {EvidenceId::said, fmt::format("The program printed: {}", hit.quote), {}, {{"line", hit.quote}}};
}

void quote(const Finding& said, Finding& known) {
  for (const Evidence& row : said.evidence)
    if (row.id == EvidenceId::said) known.evidence.push_back(row);
}

/// What a machine without the driver's kernel module says of GPUs that are simulated.
bool is_of_driver(const diagnose::Judgment& judgment) {
  const Cause cause = judgment.suspect.cause;
  return cause == Cause::no_device || cause == Cause::library_not_found || cause == Cause::driver_mismatch ||
         cause == Cause::unknown;
}

}  // namespace

void ProgramWords::learn(const input::Report& report) {
  if (run_.words.empty() || report.foreign) return;
  for (const input::FailureRecord& failure : report.failures)
    for (const input::Layer& layer : failure.layers) codes_.insert(layer.code);
  const bool failed = ending_of(report, run_).failed();
  if (!devices_.empty() && (failed_ || !failed || report.devices.empty())) return;
  failed_ = failed;
  devices_.clear();
  for (const input::DeviceRecord& row : report.devices) {
    const auto arch = image::parse_arch(row.compute_capability);
    if (!arch) continue;
    input::DeviceMention& device = devices_.emplace_back();
    device.cc = arch->cc;
    constexpr std::string_view kSimulated = " (simulated)";
    device.name = row.name;
    if (device.name.ends_with(kSimulated)) device.name.resize(device.name.size() - kSimulated.size());
    device.ordinals = {static_cast<int>(row.ordinal)};
  }
  if (report.driver) {
    simulated_ = report.driver->simulated;
    driver_ = image::parse_version(report.driver->cuda_version).value_or(image::Version{});
    kernel_module_ = report.driver->kernel_module;
  }
  env_ = report.process.env;
  for (const input::LibraryRecord& library : report.libraries)
    mapped_.insert(owner::normal_path(library.path));
  if (std::string file = installed_file(report); !file.empty())
    python_env_ = owner::python_environment(file, {}, false);
  program_ = diagnose::command_line_of(report.process);
}

// The folders of NVIDIA's wheels from which nothing was loaded, that of the library first: what is missing
// after it lies beside it.
std::string ProgramWords::unsearched_folder(const LogMatch& hit) const {
  const std::string name = group(hit, "lib");
  const std::string first = contains(name, ".so") ? library_folder(python_env_, name) : std::string();
  if (first.empty() && !name.empty()) return {};
  std::vector<std::string> folders = library_folders(python_env_);
  const std::size_t all = folders.size();
  std::erase_if(folders, [&](const std::string& folder) {
    return folder == first || std::ranges::any_of(mapped_, [&](const std::string& path) {
             return path.starts_with(folder + "/");
           });
  });
  if (!first.empty()) folders.insert(folders.begin(), first);
  // Where none is searched, the program did not look there at all.
  return first.empty() && folders.size() == all ? std::string() : core::join(folders, ":");
}

// The CUDA of what asked for a library: by its package's name (mxnet-cu112), else by what it has loaded.
unsigned ProgramWords::cuda_of_asking() const {
  if (const auto place = owner::site_path(installed_file_in(run_.words)); place) {
    const std::string module = place->relative.substr(0, place->relative.find('/'));
    for (const owner::Distribution& each : distributions_in(python_env_)) {
      const std::string name = data::ProjectName(each.name).normal();
      const std::size_t word = name.rfind("-cu");
      if (word == std::string::npos || !data::is_variant_of(name, data::normal_name(module))) continue;
      if (const image::Version cuda = advise::cuda_of(std::string_view(name).substr(word + 1)); cuda.known())
        return cuda.major;
    }
  }
  static const RE2 kNumbered(R"(/lib(?:cudart|cublas|cublasLt|nvrtc)\.so\.(\d+))");
  for (const std::string& path : mapped_)
    if (std::string major; RE2::PartialMatch(path, kNumbered, &major))
      return core::first_number<unsigned>(major).value_or(0);
  return 0;
}

// The library that says that it refuses the GPU, where it is loaded and its file has nothing for the GPU:
// that file is what refuses.
bool ProgramWords::add_refusing_file(const LogMatch& line, input::ObjectFiles& files, Finding& said,
                                     Facts& at) const {
  if (!at.gpu.cc && devices_.size() != 1) return false;
  const image::ComputeCapability cc = at.gpu.cc ? *at.gpu.cc : devices_.front().cc;
  const std::string words = to_lower(line.quote);
  for (const std::string& path : mapped_) {
    const std::string family = family_of(path);
    if (family.size() < 4 || data::find_vendor_library(path) == nullptr || !contains(words, family)) continue;
    const input::ObjectRecord object = input::object_record(path, device_code::build_id_of(path));
    const device_code::ObjectFile* file = files.find(object);
    if (file == nullptr || file->image_counts().empty()) continue;
    std::vector<diagnose::ImageFact> list;
    bool fits = false;
    for (const device_code::ImageCount& row : file->image_counts()) {
      fits = fits || image::judge(row.candidate, {cc, driver_, {}}).fits;
      list.push_back({.candidate = row.candidate, .count = row.count});
    }
    if (fits) {
      const auto gap = diagnose::FileGaps().find(object, *file, cc, driver_);
      if (gap == nullptr || !serves_by_helpers(gap->modules)) continue;
      list = gap->images;
    }
    at.gpu.cc = cc;
    at.driver.cuda = driver_;
    at.images.list = std::move(list);
    at.images.scope = diagnose::ImageScope::file;
    at.images.source = std::make_shared<const diagnose::ImageSource>();
    at.file.path = path;
    at.file.origin = diagnose::Origin::installed;
    at.call.message.clear();  // the file says more than the message
    owner::Finder finder;
    if (const auto& package = finder.of(path); package) {
      said.package = package_name(*package);
      at.package.name = package->name;
      at.package.version = package->version;
      at.package.manager = package->manager;
      at.package.environment = package->environment;
      at.package.software.clear();
    }
    said.cause = at.cause = Cause::library_refuses;
    said.object = path;
    said.need = sm_name(cc);
    said.headline = fmt::format("{} refuses {}: it has no code for this GPU", core::basename_of(path),
                                said.devices.empty() ? name(cc) : text_of(said.devices.front()));
    constexpr double kFileAndWords = 0.95;
    said.confidence = kFileAndWords;
    said.severity = Severity::error;
    describe_images(at, said);
    return true;
  }
  return false;
}

void ProgramWords::judge(bool used, input::ObjectFiles& files, std::vector<Finding>& findings) {
  const bool failed = run_.ending.failed();
  if (run_.words.empty() || (!failed && used)) return;
  if (python_env_.prefix.empty())
    if (const std::string file = installed_file_in(run_.words); !file.empty())
      python_env_ = owner::python_environment(file, {}, false);
  if (python_env_.prefix.empty()) python_env_ = owner::environment_of_program(run_.started);
  input::LogFacts clues = facts_in(run_.words);
  const LastWords last = last_words(run_.words);
  // "undefined symbol: _ZN3c10..." of fbgemm_gpu_py.so is a failure that has nothing to do with a GPU.
  const bool of_another = clues.hits.empty() && !clues.others.empty();
  const bool elsewhere = failed && !last.line.empty() && (!last.about_gpu || of_another);
  if (clues.hits.empty()) {
    if (failed && !clues.others.empty())
      other_failure_ = other_answer(clues, clues.others.back(), python_env_);
    if (elsewhere)
      for (Finding& known : findings)
        if (is_by_ending(known))
          known.severity =
              std::min(known.severity, known.failed_call.empty() ? Severity::info : Severity::warning);
    return;
  }
  if (!devices_.empty()) clues.devices = devices_;
  if (clues.devices.empty())
    for (const image::ComputeCapability cc : run_.simulated) clues.devices.emplace_back().cc = cc;
  if (driver_.known()) clues.driver = driver_;
  if (!kernel_module_.empty()) clues.kernel_module = kernel_module_;
  clues.shows.emplace("posix");
  for (const auto& [name, value] : env_) clues.env.try_emplace(name, value);
  for (input::PackageMention& package : clues.packages)
    for (const auto& [name, version] : python_env_.installed)
      if (package.version.empty() && name == package.name) package.version = version;
  const diagnose::Judgment judgment = diagnose::judge(clues, false);
  if (judgment.hit == nullptr) return;
  if (run_.no_kernel_module && is_of_driver(judgment)) {
    needs_module_ = asks_for_module(run_.words, python_env_);
    if (!needs_module_.empty()) return;
  }
  // Initializing CUDA shows which GPUs there are: a program that then sees none was refused by something
  // else.
  if (judgment.suspect.cause == Cause::no_device && !devices_.empty() && !codes_.contains(kNoDevice)) return;
  if (judgment.suspect.cause == Cause::no_device && !failed) {
    // It looked for GPUs by way of a runtime that the driver is too old for.
    for (const diagnose::IdleProcess& process : run_.idle)
      if (auto finding = idle_driver(process, run_.first_simulated(), files)) {
        finding->severity = Severity::warning;
        finding->evidence.push_back(said_in(*judgment.hit));
        findings.push_back(std::move(*finding));
        return;
      }
  }
  // A code about device code that no call returned, and a file that lacks some: that file is meant.
  const int code = judgment.facts.call.codes.empty() ? 0 : judgment.facts.call.codes.front();
  const bool thrown = failed && !codes_.contains(code) && !devices_.empty() && run_.blind.empty() &&
                      (is_image_cause(judgment.suspect.cause) || code_has(code, code_trait::not_found));
  const auto gap = std::ranges::find_if(findings, [&](const Finding& known) {
    return thrown && code != 0 && known.cause == Cause::latent_gap && !known.object.empty() &&
           !diagnose::is_hypothetical(known);
  });
  Finding said = log_finding(clues, judgment, {});
  Facts refusing = *said.about;
  const bool refuses = said.cause == Cause::library_refuses || said.cause == Cause::cudnn_mismatch;
  const bool by_file = failed && refuses && add_refusing_file(*judgment.hit, files, said, refusing);
  if (judgment.suspect.confidence < kSaid && gap == findings.end() && !by_file) return;
  for (Evidence& row : said.evidence)
    if (row.id == EvidenceId::deciding_line) row = said_in(*judgment.hit);
  for (core::Device& device : said.devices) {
    if (devices_.empty()) break;
    device.kind = core::Device::Kind::present;
    device.simulated = simulated_;
    for (const input::DeviceMention& row : devices_)
      if (row.cc == device.cc && row.name == device.name && row.ordinals.front() >= 0)
        device.ordinal = static_cast<std::uint64_t>(row.ordinals.front());
  }
  // A warning at the start, and another error at the end: the warning is not why.
  if (elsewhere && !judgment.hit->thrown && !by_file) {
    said.severity = std::min(said.severity, Severity::warning);
    for (Finding& known : findings)
      if (is_by_ending(known)) known.severity = std::min(known.severity, Severity::warning);
  }
  if (!failed) {
    // Programs go on without: on the CPU.
    if (is_of_no_error(judgment.hit->quote)) return;
    if (!has_trait(said.cause, core::cause_trait::optional)) return;
    said.severity =
        std::min(said.severity,
                 has_trait(said.cause, core::cause_trait::handled) ? Severity::info : Severity::warning);
  }
  Finding* same = nullptr;
  Finding* better = nullptr;
  for (Finding& known : findings) {
    // What a program handled is a note on both sides.
    if (known.severity < Severity::warning && (failed || known.cause != said.cause)) continue;
    if (same == nullptr && is_same_failure(said, known, *judgment.hit)) same = &known;
    if (better == nullptr && known.severity == Severity::error && known.confidence >= said.confidence)
      better = &known;
  }
  // A message that has a cause of its own says more than the code of the call.
  constexpr double kSurer = 0.2;
  const bool surer = same != nullptr && same->cause == said.cause && !is_image_cause(said.cause) &&
                     said.about && !said.about->call.message.empty() && same->object.empty() &&
                     said.severity >= same->severity && said.confidence >= same->confidence + kSurer;
  if (same != nullptr && !surer && (same->severity == Severity::error || said.severity < Severity::error)) {
    quote(said, *same);
    return;
  }
  if (better != nullptr && !surer) {
    quote(said, *better);
    return;
  }
  // What the library's file shows is more than its status: the words are the evidence that it was this.
  if (same != nullptr && is_by_file(*same)) {
    std::erase_if(same->evidence, [](const Evidence& row) { return row.id == EvidenceId::ended_silently; });
    same->severity = said.severity;
    same->confidence = std::max(same->confidence, said.confidence);
    same->headline.clear();
    if (same->where.empty()) same->where = said.where;
    quote(said, *same);
    std::erase_if(findings, [&](const Finding& known) {
      return &known != same && is_by_ending(known) && known.severity < Severity::error;
    });
    return;
  }
  if (said.cause == Cause::unknown && !findings.empty()) return;
  Facts at = by_file ? std::move(refusing) : *said.about;
  at.process.python_env = python_env_;
  if (at.process.program.empty()) at.process.program = program_;
  if (said.cause == Cause::library_not_found && same == nullptr) say_library_wheel(at, cuda_of_asking());
  if (said.cause == Cause::library_not_found && same == nullptr)
    if (std::string folder = unsearched_folder(*judgment.hit); !folder.empty()) {
      const std::string name = group(*judgment.hit, "lib");
      at.process.missing = diagnose::MissingLibrary{{}, name, {}, std::move(folder), true};
    }
  if (same != nullptr) {
    take_files(*same, said, at);
  } else if (gap != findings.end()) {
    // CUB and Thrust look for a kernel's attributes, and throw without a call that failed.
    said.evidence.push_back(
        {EvidenceId::ended_silently,
         fmt::format("No call of CUDA returned {}: the program or a library threw it.", code),
         {},
         {{"code", std::to_string(code)}}});
    same = &*gap;
    take_files(*gap, said, at);
    if (gap->about) {
      Facts facts = *gap->about;
      facts.call.codes = {code};
      const diagnose::Diagnosis diagnosis = diagnosis_of(facts);
      if (is_image_cause(diagnosis.cause)) {
        constexpr double kThrown = 0.75;
        said.cause = diagnosis.cause;
        said.headline.clear();
        said.confidence =
            std::clamp(diagnosis.match.confidence, said.confidence, std::max(said.confidence, kThrown));
      }
      at.gpu = std::move(facts.gpu);
      at.driver = std::move(facts.driver);
      at.images = std::move(facts.images);
      at.call.codes = std::move(facts.call.codes);
    }
  }
  set_about(std::move(at), said);
  // What an exception leaves behind is freed in a context that is gone already.
  constexpr int kContextIsDestroyed = 709;
  const bool unwinding = judgment.hit->thrown && last.exception;
  std::erase_if(findings, [&](const Finding& known) {
    return &known == same || (known.severity < Severity::error && is_by_ending(known)) ||
           (unwinding && known.code == kContextIsDestroyed);
  });
  findings.push_back(std::move(said));
}

}  // namespace kshim::verbs
