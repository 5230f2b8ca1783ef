// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "analyzer/core/log.h"
#include "analyzer/core/text.h"
#include "analyzer/input/report/report_index.h"

namespace kshim::analysis {
namespace {

// Failures whose frames tell where packages are installed.
constexpr std::size_t kMostAsked = 64;
constexpr std::size_t kMostBuildIds = 50'000;
constexpr std::size_t kMostPlaces = 4;
constexpr std::size_t kMostAddresses = 64;
// Each costs a process of its own.
constexpr std::size_t kMostSourceReads = 200;

/// Whether the path is one of another root than ours; what lies below that root already is not.
bool is_of_root(const std::filesystem::path& root, const std::string& path) {
  return root != "/" && !path.starts_with(root.string() + "/");
}

/// Where the file of a report lies below another root than ours. Links are that root's own: an absolute one
/// begins at it, and none leads out of it.
std::string below_root(const std::filesystem::path& root, const std::string& path) {
  namespace fs = std::filesystem;
  if (!is_of_root(root, path)) return path;
  constexpr int kMostLinks = 40;
  std::string rest = fs::path(path).lexically_normal().relative_path().string();
  for (int link = 0; link < kMostLinks; ++link) {
    fs::path here;
    bool moved = false;
    for (const fs::path& part : fs::path(rest)) {
      if (moved) {
        here /= part;
        continue;
      }
      std::error_code error;
      const fs::path target = fs::read_symlink(root / here / part, error);
      moved = !error;
      here = error
                 ? here / part
                 : (target.is_absolute() ? target : ("/" / here / target)).lexically_normal().relative_path();
    }
    rest = here.string();
    if (!moved) break;
  }
  return (root / rest).string();
}

}  // namespace

void ObjectFiles::learn(const Report& report) {
  const auto add = [this](const std::string& path, const std::string& build_id) {
    if (build_id.empty() || path.empty()) return;
    const auto known = places_.find(build_id);
    if (known == places_.end() && places_.size() >= kMostBuildIds) return;
    std::vector<std::string>& paths = places_[build_id];
    if (paths.size() < kMostPlaces && std::find(paths.begin(), paths.end(), path) == paths.end())
      paths.push_back(path);
  };
  for (const ObjectRecord& row : report.objects) add(row.path, row.build_id);
  for (const LibraryRecord& row : report.libraries) add(row.path, row.build_id);
  for (const FailureRecord& failure : report.failures) {
    for (const NativeFrame& frame : failure.native) add(frame.object, frame.build_id);
  }
  note_environments(report);
}

void ObjectFiles::note_environments(const Report& report) {
  for (const ObjectRecord& row : report.objects) packages_.note(row.path);
  for (const LibraryRecord& row : report.libraries) packages_.note(row.path);
  for (std::size_t i = 0; i < std::min(report.failures.size(), kMostAsked); ++i) {
    for (const PythonFrame& frame : report.failures[i].python) packages_.note(frame.file);
  }
  if (report.process.argv.empty()) return;
  const std::filesystem::path program = report.process.argv.front();
  if (program.has_parent_path())
    packages_.note_program((std::filesystem::path(report.process.cwd) / program).string());
}

ObjectFiles::Entry& ObjectFiles::entry(const ObjectRecord& object) {
  const Key key(object.path, object.build_id);
  auto found = files_.find(key);
  if (found == files_.end()) {
    Entry added{ObjectFile::open(below_root(root_, object.path), object.build_id), {}, {}};
    if (const auto* why = std::get_if<std::string>(&added.file)) {
      added.why_not = *why;
      look_elsewhere(object, added);
    }
    found = files_.emplace(key, std::move(added)).first;
    if (logs_debug()) {
      const std::string& why_not = found->second.why_not;
      log_debug(harmless(object.path) + ": " +
                (why_not.empty() ? "read beside the report" : harmless(why_not)));
    }
  }
  return found->second;
}

void ObjectFiles::look_elsewhere(const ObjectRecord& object, Entry& entry) {
  const auto places = object.build_id.empty() ? places_.end() : places_.find(object.build_id);
  if (places == places_.end()) return;
  for (const std::string& path : places->second) {
    if (path == object.path) continue;
    auto opened = ObjectFile::open(below_root(root_, path), object.build_id);
    if (!std::holds_alternative<ObjectFile>(opened)) continue;
    entry.file = std::move(opened);
    entry.elsewhere = path;
    return;
  }
}

const ObjectFile* ObjectFiles::find(const ObjectRecord& object) {
  return std::get_if<ObjectFile>(&entry(object).file);
}

const std::string& ObjectFiles::why_not(const ObjectRecord& object) { return entry(object).why_not; }

const std::string& ObjectFiles::elsewhere(const ObjectRecord& object) { return entry(object).elsewhere; }

std::optional<packages::Package> ObjectFiles::package(const ObjectRecord& object) {
  if (object.path.empty()) return std::nullopt;
  const auto package_at = [&](const std::string& path) {
    return is_of_root(root_, path) ? packages_.in_root(std::filesystem::path(path).relative_path().string())
                                   : packages_.of(path);
  };
  const Entry& file = entry(object);
  if (std::holds_alternative<ObjectFile>(file.file))
    return package_at(file.elsewhere.empty() ? object.path : file.elsewhere);
  auto out = package_at(object.path);
  if (out) {
    out->version.clear();
    out->build.clear();
    out->also.clear();
  }
  return out;
}

void ObjectFiles::read_sources(const ObjectRecord& object, const std::vector<std::uint64_t>& addresses) {
  const ObjectFile* opened = find(object);
  if (opened == nullptr) return;
  auto& known = sources_[Key(object.path, object.build_id)];
  std::vector<std::uint64_t> wanted;
  for (const std::uint64_t address : addresses) {
    if (wanted.size() < kMostAddresses && known.emplace(address, source::SourceFrames()).second)
      wanted.push_back(address);
  }
  const std::string& other = elsewhere(object);
  const source::HostFile file{below_root(root_, other.empty() ? object.path : other), object.build_id, root_};
  if (wanted.empty() || source_reads_ >= kMostSourceReads ||
      !(opened->has_dwarf() || source::has_debug_file(file)))
    return;
  ++source_reads_;
  auto frames = source::host_lines(file, wanted);
  for (std::size_t i = 0; i < wanted.size(); ++i) known[wanted[i]] = std::move(frames[i]);
}

const source::SourceFrames& ObjectFiles::source_at(const ObjectRecord& object, std::uint64_t address) {
  static const source::SourceFrames none;
  const auto file = sources_.find(Key(object.path, object.build_id));
  if (file == sources_.end()) return none;
  const auto at = file->second.find(address);
  return at == file->second.end() ? none : at->second;
}

}  // namespace kshim::analysis
