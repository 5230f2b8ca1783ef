// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/places.h"

#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/core/text.h"
#include "analyzer/data/frames.h"
#include "analyzer/data/knowledge.h"
#include "kshim/files/open_file.h"
#include "kshim/report/report_folder.h"

namespace kshim::diagnose {
using core::contains;
using core::Place;
using data::FrameOwner;
using input::FailureRecord;
using input::NativeFrame;
using input::ObjectFiles;
using input::ObjectRecord;
using input::PackageRecord;
using input::PythonFrame;
using input::Report;

namespace {

// A CMake build folder is rarely deeper above its products.
constexpr int kMaxParents = 6;

/// Whether CMake builds CUDA there: a project that calls nvcc by itself takes no notice of
/// CMAKE_CUDA_ARCHITECTURES.
bool is_cuda_build(const std::filesystem::path& folder) {
  constexpr std::size_t kMax = std::size_t{4} << 20U;
  const std::string cache = '\n' + files::read_whole(folder / "CMakeCache.txt", kMax).value_or("");
  return contains(cache, "\nCMAKE_CUDA_COMPILER:");
}

// Where this process kept what it compiled from text of its own, wherever the environment said.
bool is_in_cache(std::string_view file, const Report& report) {
  return std::ranges::any_of(data::caches(), [&](const data::CacheRow& row) {
    const auto folder = report.process.env.find(std::string(row.variable));
    return folder != report.process.env.end() && folder->second.size() > 1 &&
           file.starts_with(folder->second) && file.substr(folder->second.size()).starts_with('/');
  });
}

bool is_own_python(const PythonFrame& frame, const Report& report) {
  return !frame.file.empty() && data::owner_of_python(frame.file, frame.function) == FrameOwner::user &&
         !is_in_cache(frame.file, report);
}

Place place_of(const PythonFrame& frame) {
  return {.file = frame.file, .line = frame.line, .function = frame.function, .python = true};
}

// The program of `python -c` is text like much that libraries make; it is the user's where it began
// everything.
std::optional<Place> own_command(const std::vector<PythonFrame>& frames) {
  if (frames.empty() || frames.back().file != "<string>" || frames.back().function != "<module>")
    return std::nullopt;
  return place_of(frames.back());
}

std::string symbol_of(const NativeFrame& frame, ObjectFiles& files) {
  if (!frame.symbol.empty() || frame.object.empty()) return frame.symbol;
  const device_code::ObjectFile* file = files.find(input::object_record(frame.object, frame.build_id));
  // A frame's offset is where its call returns to: the byte before belongs to the call.
  return file != nullptr && frame.offset > 0 ? file->symbol_at(frame.offset - 1) : std::string();
}

bool is_own_object(const NativeFrame& frame, const Report& report) {
  const FrameOwner owner = data::owner_of_object(frame.object);
  if (owner == FrameOwner::user) return true;
  // A program that pip installed is what was run all the same.
  return owner == FrameOwner::library && frame.object == report.process.exe &&
         !data::is_system_path(frame.object);
}

// Innermost function of the user's own among what was inlined at one address: neither a header of CUDA or the
// system nor the text that nvcc makes around the user's.
const device_code::SourceFrame* own_source(const device_code::SourceFrames& frames,
                                           const std::string& kernel) {
  for (const device_code::SourceFrame& frame : frames) {
    if (frame.at.file.empty() || frame.at.line == 0) continue;
    if (data::owner_of_source(frame.at.file) != FrameOwner::user) continue;
    if (data::owner_of_symbol(frame.function) != FrameOwner::user) continue;
    if (!kernel.empty() && frame.function == kernel) continue;
    return &frame;
  }
  return nullptr;
}

// Frames of one file are looked up together: each look-up costs a process.
void read_sources(const std::vector<const NativeFrame*>& frames, ObjectFiles& files) {
  std::map<std::pair<std::string, std::string>, std::vector<std::uint64_t>> wanted;
  for (const NativeFrame* frame : frames) {
    if (frame->offset > 0) wanted[{frame->object, frame->build_id}].push_back(frame->offset - 1);
  }
  for (const auto& [key, addresses] : wanted) {
    files.read_sources(input::object_record(key.first, key.second), addresses);
  }
}

std::vector<Place> own_native_places(const FailureRecord& failure, const Report& report, ObjectFiles& files) {
  std::vector<const NativeFrame*> frames;
  for (const NativeFrame& frame : failure.native) {
    if (!frame.object.empty() && is_own_object(frame, report)) frames.push_back(&frame);
  }
  read_sources(frames, files);
  std::vector<Place> out;
  for (const NativeFrame* frame : frames) {
    if (out.size() >= core::kMaxPlaces) break;
    const device_code::SourceFrames& sources = files.source_at(
        input::object_record(frame->object, frame->build_id), frame->offset > 0 ? frame->offset - 1 : 0);
    const device_code::SourceFrame* source = own_source(sources, failure.kernel);
    if (!sources.empty() && source == nullptr)
      continue;  // a header's function, compiled into the user's file
    // DWARF has no mangled name of a static function; the table of symbols has it, of what was not inlined.
    const bool inlined = source != nullptr && source != &sources.back();
    std::string symbol = inlined ? std::string() : symbol_of(*frame, files);
    if (symbol.empty() && source != nullptr) symbol = source->function;
    const bool plumbing = data::owner_of_symbol(symbol) != FrameOwner::user ||
                          (!failure.kernel.empty() && symbol == failure.kernel);
    if (source == nullptr && plumbing) continue;
    if (symbol.empty() && !out.empty()) continue;
    Place place;
    place.object = frame->object;
    place.offset = frame->offset;
    place.function = core::demangle(symbol);
    if (source != nullptr) {
      place.file = source->at.file;
      place.line = source->at.line;
    }
    out.push_back(std::move(place));
  }
  // A frame with a name says more than an address; the order within each kind stays.
  std::stable_partition(out.begin(), out.end(), [](const Place& place) { return !place.function.empty(); });
  return out;
}

// "pytorch 2.5.1 (conda, build py3.11_cuda12.4, channel pytorch, environment ml)"
std::string long_text(const PackageRecord& package) {
  std::string details = package.manager;
  if (!package.build.empty()) details += ", build " + package.build;
  if (!package.channel.empty()) details += ", channel " + package.channel;
  if (package.manager == "conda" && !package.environment.empty())
    details += fmt::format(", environment {}", core::basename_of(package.environment));
  if (!package.source.empty()) details += ", built from " + package.source;
  return fmt::format("{} ({})", package_name(package).label(), details);
}

std::string sentence(const PackageRecord& package, const std::string& path) {
  const std::string_view file = core::basename_of(path);
  if (const std::string copy = owner::vendored_library(path); !copy.empty())
    return fmt::format("{} is a copy of {} inside {}.", file, copy, long_text(package));
  // What the row with the package says already is not said twice.
  const bool more = !package.build.empty() || !package.source.empty() || package.manager == "dpkg" ||
                    package.manager == "rpm";
  return more ? fmt::format("{} belongs to {}.", file, long_text(package)) : std::string();
}

/// Whether only the caller and root put files where this one lies: what the records of packages there say is
/// then not the word of another user.
bool is_among_trusted_files(const std::string& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  for (std::filesystem::path part = real; !error; part = part.parent_path()) {
    struct stat status {};
    if (::stat(part.c_str(), &status) != 0 || report::is_another_user(status.st_uid, ::geteuid()) ||
        ((status.st_mode & S_ISVTX) == 0 && report::others_may_write(status, ::geteuid())))
      return false;
    if (part == part.root_path()) return true;
  }
  return false;
}

}  // namespace

std::vector<Place> own_places(const FailureRecord& failure, const Report& report, ObjectFiles& files) {
  std::vector<Place> out;
  for (const auto* frames : {&failure.python, &failure.python_main}) {
    for (const PythonFrame& frame : *frames) {
      if (out.size() < core::kMaxPlaces && is_own_python(frame, report)) out.push_back(place_of(frame));
    }
    if (!out.empty()) return out;
  }
  for (const auto* frames : {&failure.python, &failure.python_main}) {
    if (const auto command = own_command(*frames)) return {*command};
  }
  return own_native_places(failure, report, files);
}

bool called_by_probing_library(const FailureRecord& failure) {
  for (const NativeFrame& frame : failure.native) {
    if (frame.object.empty() || data::owner_of_object(frame.object) == FrameOwner::plumbing) continue;
    return data::find_probing_library(frame.object) != nullptr;
  }
  return false;
}

std::optional<image::Version> calling_runtime(const FailureRecord& failure) {
  constexpr std::string_view kMark = ".so.";
  if (failure.native.empty()) return std::nullopt;
  const std::string_view name = core::basename_of(failure.native.front().object);
  const std::size_t mark = name.find(kMark);
  if (!name.starts_with("libcudart") || mark == name.npos) return std::nullopt;
  const std::string digits(name.substr(mark + kMark.size()));
  const auto version = image::parse_version(contains(digits, '.') ? digits : digits + ".0");
  return version ? std::optional(*version) : std::nullopt;
}

bool is_slot(std::string_view api) { return api.starts_with("CUDART_INTERFACE slot"); }

std::string shown_call(const std::string& api) {
  return is_slot(api) ? "the CUDA runtime's load of a module" : api;
}

bool launched_by_stub(const FailureRecord& failure, ObjectFiles& files) {
  return std::ranges::any_of(failure.native, [&](const NativeFrame& frame) {
    const std::string symbol = symbol_of(frame, files);
    return contains(symbol, "__device_stub__") || (!symbol.empty() && symbol == failure.kernel);
  });
}

OriginFacts origin_of(std::string_view path) {
  if (path.empty()) return {Origin::memory, {}};
  if (contains(path, "/site-packages/") || contains(path, "/dist-packages/")) return {Origin::installed, {}};
  const std::string_view name = core::basename_of(path);
  if (contains(path, "/torch_extensions/") || contains(name, ".cpython-") || name.ends_with(".abi3.so")) {
    return {Origin::python_extension, {}};
  }
  if (data::is_system_path(path)) return {Origin::system, {}};
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  for (int level = 0; level < kMaxParents && folder.has_relative_path();
       ++level, folder = folder.parent_path()) {
    if (is_cuda_build(folder)) return {Origin::cmake, folder.string()};
  }
  return {Origin::program, {}};
}

PackageRecord record_of(const owner::Package& package, std::uint64_t object) {
  PackageRecord out;
  out.object = object;
  out.name = package.name;
  out.version = package.version;
  out.manager = package.manager;
  out.build = package.build;
  out.channel = package.channel;
  out.environment = package.environment;
  out.source = package.source;
  return out;
}

std::optional<PackageRecord> package_of(const Scene& scene, const ObjectRecord& object) {
  // What was made up from a library's or a frame's record has no id of its own.
  const ObjectRecord* named = scene.index.object(object.id);
  if (named != nullptr && named->path == object.path) {
    if (const PackageRecord* row = scene.index.package(object.id)) return *row;
  }
  return package_here(scene, object);
}

std::optional<PackageRecord> package_here(const Scene& scene, const ObjectRecord& object) {
  if (scene.files.find(object) == nullptr && !is_of_this_machine(scene.report)) return std::nullopt;
  if (scene.report.foreign && !is_among_trusted_files(object.path)) return std::nullopt;
  const auto package = scene.files.package(object);
  if (!package) return std::nullopt;
  return record_of(*package, object.id);
}

core::PackageName package_name(const PackageRecord& package) {
  return {package.name, package.version, package.manager};
}

std::vector<core::Evidence> owner_evidence(const Scene& scene, const ObjectRecord& object) {
  std::vector<core::Evidence> out;
  const core::ReportLine at = location(scene.report, object.line);
  if (const std::string& other = scene.files.elsewhere(object); !other.empty())
    out.push_back({core::EvidenceId::read_elsewhere,
                   fmt::format("{} {}: {}, which has the same build id, was read in its place.", object.path,
                               scene.files.why_not(object), other),
                   at,
                   {{"file", object.path}, {"read", other}}});
  const auto package = package_of(scene, object);
  if (!package) return out;
  if (std::string text = sentence(*package, object.path); !text.empty())
    out.push_back(
        {core::EvidenceId::owner,
         std::move(text),
         at,
         {{"package", package->name}, {"version", package->version}, {"installer", package->manager}}});
  if (const auto found = scene.files.package(object); found && !found->also.empty())
    out.push_back(
        {core::EvidenceId::shared_file,
         fmt::format("{} lists the same file: of two packages that share files, what was installed last "
                     "is there.",
                     core::enumerate(found->also)),
         at,
         {{"packages", core::enumerate(found->also)}}});
  return out;
}

}  // namespace kshim::diagnose
