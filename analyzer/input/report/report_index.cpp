// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/report/report_index.h"

#include <sys/utsname.h>

#include "analyzer/core/log.h"
#include "analyzer/core/text.h"
#include "kshim/base/hash.h"
#include "kshim/files/open_file.h"
#include "kshim/report/kept_image.h"

namespace kshim::input {
using data::CacheRow;
using device_code::FileTime;
using device_code::ObjectFile;

namespace {

template <class Map>
auto lookup(const Map& map, std::optional<std::uint64_t> id) -> typename Map::mapped_type {
  if (!id) return nullptr;
  const auto found = map.find(*id);
  return found == map.end() ? nullptr : found->second;
}

const GapRecord* nearest(const std::vector<const GapRecord*>& gaps, std::optional<std::uint64_t> device,
                         std::uint32_t line) {
  const auto suits = [&](const GapRecord* row) { return !device || row->device == device; };
  const auto middle = std::lower_bound(gaps.begin(), gaps.end(), line,
                                       [](const GapRecord* row, std::uint32_t at) { return row->line < at; });
  const auto after = std::find_if(middle, gaps.end(), suits);
  const auto before = std::find_if(std::make_reverse_iterator(middle), gaps.rend(), suits);
  if (before == gaps.rend()) return after == gaps.end() ? nullptr : *after;
  return after != gaps.end() && (*after)->line - line < line - (*before)->line ? *after : *before;
}

// Failures whose frames tell where packages are installed.
constexpr std::size_t kMaxAsked = 64;
constexpr std::size_t kMaxBuildIds = 50'000;
constexpr std::size_t kMaxPaths = 4;
constexpr std::size_t kMaxAddresses = 64;
// Each costs a process of its own.
constexpr std::size_t kMaxSourceReads = 200;

/// Whether the path is one of another root than ours; what lies below that root already is not.
bool is_of_root(const std::filesystem::path& root, const std::string& path) {
  return root != "/" && !path.starts_with(root.string() + "/");
}

/// Where the file of a report lies below another root than ours.
std::string below_root(const std::filesystem::path& root, const std::string& path) {
  if (!is_of_root(root, path)) return path;
  return (root / owner::resolve_in(root, path).value_or(std::filesystem::path(path).relative_path()))
      .string();
}

namespace fs = std::filesystem;

constexpr std::size_t kMaxQuestions = 256;
constexpr int kDeepest = 8;
// Some write a checksum in front of the code (CuPy), or end a text with a NUL.
constexpr std::uint64_t kMaxAround = 256;
constexpr std::uint64_t kMaxBytes = std::uint64_t{256} << 20;

// The folders that a row stands for: what the variable says, else the default.
std::vector<fs::path> folders_of(const CacheRow& row, const CacheSearch::Environment& environment) {
  const auto set = environment.find(std::string(row.variable));
  if (set != environment.end() && !set->second.empty()) return {fs::path(set->second)};
  fs::path place(row.fallback);
  if (place.is_relative()) {
    const char* home = std::getenv("HOME");
    if (home == nullptr || *home == '\0') return {};
    return {fs::path(home) / place};
  }
  const std::string pattern = place.filename().string();
  if (!pattern.ends_with('*')) return {place};
  std::vector<fs::path> out;
  std::error_code error;
  fs::directory_iterator at(place.parent_path(), error);
  for (const fs::directory_iterator end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (at->path().filename().string().starts_with(pattern.substr(0, pattern.size() - 1)) &&
        at->symlink_status(ignored).type() == fs::file_type::directory)
      out.push_back(at->path());
  }
  return out;
}

bool has_content(const std::string& path, std::uint64_t hash, std::uint64_t size) {
  const auto opened = device_code::MappedFile::open(path);
  const auto* file = std::get_if<device_code::MappedFile>(&opened);
  if (file == nullptr || file->bytes().size() < size) return false;
  const Bytes bytes = file->bytes();
  const auto at = [&](std::uint64_t offset) {
    return content_hash(bytes.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size))) ==
           hash;
  };
  return at(0) || (bytes.size() > size && at(bytes.size() - size));
}

// What a report says is not believed: the name is one that the shim makes, the file is no link and its owner
// is the report's, and its bytes are those of the module record.
std::variant<ObjectFile, std::string> open_kept(const fs::path& path, std::uint32_t owner,
                                                const ModuleRecord& module) {
  using image::BlobKind;
  const FileTime timed;
  const auto hash = core::parse_number<std::uint64_t>(module.content_hash, 16);
  const bool named = hash && std::ranges::any_of(std::array{BlobKind::cubin, BlobKind::ptx, BlobKind::fatbin},
                                                 [&](BlobKind kind) {
                                                   return report::KeptName(*hash, kind).view() == module.kept;
                                                 });
  if (!named) return std::string("has no name that the shim gives to images");
  std::error_code error;
  if (fs::is_symlink(fs::symlink_status(path, error))) return std::string("is a link");
  const files::OpenFile file = files::open_to_read(path);
  if (!file) return file.why;
  if (file.status.st_uid != owner) return std::string("belongs to another user than the report");
  const auto bytes = files::read_whole(file, report::kMaxKeptImage);
  if (!bytes || bytes->size() != module.size || content_hash(bytes_of(*bytes)) != *hash)
    return std::string("does not hold the image that the driver refused: its content differs");
  return ObjectFile::open(path.string(), {});
}

// Triton's folders are named by a hash. Whatever else lies around a file is not ours to name for deletion.
bool is_key(std::string_view folder) {
  constexpr std::size_t kShortest = 26;
  return folder.size() >= kShortest && std::ranges::all_of(folder, [](char letter) {
           return core::is_alnum(letter) || letter == '_' || letter == '-';
         });
}

std::string entry_of(const CacheRow& row, const std::string& file, const std::string& folder) {
  const fs::path parent = fs::path(file).parent_path();
  const bool whole = row.whole_folder && parent != fs::path(folder) && is_key(parent.filename().string());
  return whole ? parent.string() : file;
}

}  // namespace

ObjectRecord object_record(std::string path, std::string build_id) {
  ObjectRecord out;
  out.path = std::move(path);
  out.build_id = std::move(build_id);
  return out;
}

bool is_of_this_machine(const Report& report) {
  static const utsname system = [] {
    utsname out{};
    ::uname(&out);
    return out;
  }();
  return report.process.host == system.nodename;
}

ReportIndex::ReportIndex(const Report& report) : report_(report) {
  for (const ObjectRecord& row : report.objects) objects_.emplace(row.id, &row);
  for (const ModuleRecord& row : report.modules) modules_.emplace(row.id, &row);
  for (const PackageRecord& row : report.packages) packages_.emplace(row.object, &row);
  for (const ModuleRecord& row : report.modules) {
    if (row.object && row.result == 0) loaded_.emplace(*row.object, row.device);
  }
  for (const GapRecord& row : report.gaps) {
    if (!row.device) continue;  // it speaks of a KSHIM_TARGET
    gaps_[row.object].push_back(&row);
    gaps_at_[{row.object, row.offset}].push_back(&row);
    if (!row.object || !row.offset) continue;  // loose images: each may be another
    const GapRecord*& fullest = fullest_[{row.object, row.offset, row.device}];
    if (fullest == nullptr || row.kernels.size() > fullest->kernels.size()) fullest = &row;
  }
  note_languages();
  for (const FailureRecord& row : report.failures) {
    if (row.stage != "launch") continue;
    const ModuleRecord* loaded = module(row.module);
    if (row.module) launch_failed_modules_.insert(*row.module);
    if (row.object) launch_failed_objects_.insert(*row.object);
    if (loaded != nullptr && loaded->object) launch_failed_objects_.insert(*loaded->object);
  }
}

const ObjectRecord* ReportIndex::object(std::optional<std::uint64_t> id) const {
  return lookup(objects_, id);
}
const ModuleRecord* ReportIndex::module(std::optional<std::uint64_t> id) const {
  return lookup(modules_, id);
}
const PackageRecord* ReportIndex::package(std::uint64_t object) const { return lookup(packages_, object); }

void ReportIndex::note_languages() {
  for (const FailureRecord& failure : report_.failures) {
    python_ = python_ || !failure.python.empty();
    for (const PythonFrame& frame : failure.python) torch_ = torch_ || core::contains(frame.file, "/torch/");
  }
  for (const ObjectRecord& object : report_.objects) {
    torch_ = torch_ || core::basename_of(object.path).starts_with("libtorch") ||
             core::contains(object.path, "/torch/");
  }
}

bool ReportIndex::loaded(std::uint64_t object, std::optional<std::uint64_t> device) const {
  return loaded_.count({object, device}) != 0;
}

bool ReportIndex::launch_failed(std::optional<std::uint64_t> object,
                                std::optional<std::uint64_t> module) const {
  return (object && launch_failed_objects_.count(*object) != 0) ||
         (module && launch_failed_modules_.count(*module) != 0);
}

const DeviceRecord* ReportIndex::device(std::optional<std::uint64_t> ordinal) const {
  if (!ordinal) return report_.devices.size() == 1 ? &report_.devices.front() : nullptr;
  for (const DeviceRecord& row : report_.devices) {
    if (row.ordinal == *ordinal) return &row;
  }
  return nullptr;
}

const GapRecord* ReportIndex::gap(std::optional<std::uint64_t> object, std::optional<std::uint64_t> offset,
                                  std::optional<std::uint64_t> device, std::uint32_t line) const {
  const auto in = [&](const auto& map, const auto& key) -> const GapRecord* {
    const auto found = map.find(key);
    const GapRecord* row = found == map.end() ? nullptr : nearest(found->second, device, line);
    if (row == nullptr) return nullptr;
    const auto fullest = fullest_.find({row->object, row->offset, row->device});
    return fullest == fullest_.end() || fullest->second->need != row->need ? row : fullest->second;
  };
  if (const GapRecord* exact = in(gaps_at_, std::pair(object, offset))) return exact;
  return offset ? in(gaps_at_, std::pair(object, Id())) : in(gaps_, object);
}

void ObjectFiles::charge(std::optional<std::uint32_t> owner) {
  if (owner_) spent_[*owner_] += FileTime::spent() - begin_;
  owner_ = owner;
  begin_ = FileTime::spent();
  left_out_.clear();
}

void ObjectFiles::learn(const Report& report) {
  charge(report.owner);
  const auto add = [this](const std::string& path, const std::string& build_id) {
    if (build_id.empty() || path.empty()) return;
    const auto known = places_.find(build_id);
    if (known == places_.end() && places_.size() >= kMaxBuildIds) return;
    std::vector<std::string>& paths = places_[build_id];
    if (paths.size() < kMaxPaths && !core::contains(paths, path)) paths.push_back(path);
  };
  for (const ObjectRecord& row : report.objects) add(row.path, row.build_id);
  for (const LibraryRecord& row : report.libraries) add(row.path, row.build_id);
  for (const FailureRecord& failure : report.failures) {
    for (const NativeFrame& frame : failure.native) add(frame.object, frame.build_id);
  }
  note_environments(report);
}

void ObjectFiles::forget() {
  places_.clear();
  packages_.forget();
}

void ObjectFiles::note_environments(const Report& report) {
  for (const ObjectRecord& row : report.objects) packages_.note(row.path);
  for (const LibraryRecord& row : report.libraries) packages_.note(row.path);
  for (std::size_t i = 0; i < std::min(report.failures.size(), kMaxAsked); ++i) {
    for (const PythonFrame& frame : report.failures[i].python) packages_.note(frame.file);
  }
  if (report.process.argv.empty()) return;
  const std::filesystem::path program = report.process.argv.front();
  if (program.has_parent_path())
    packages_.note_program((std::filesystem::path(report.process.cwd) / program).string());
}

const std::string& ObjectFiles::real_path(const std::string& path) {
  const auto [row, fresh] = real_paths_.try_emplace(path);
  std::error_code error;
  if (fresh) row->second = std::filesystem::canonical(path, error).string();
  return row->second;
}

bool ObjectFiles::is_patient() const {
  const auto before = owner_ ? spent_.find(*owner_) : spent_.end();
  return FileTime::spent() - begin_ +
             (before == spent_.end() ? FileTime::Clock::duration() : before->second) <
         patience_;
}

const ObjectFiles::Entry& ObjectFiles::entry(const std::string& path, const std::string& build_id) {
  Key key(path, build_id);
  auto found = files_.find(key);
  if (found == files_.end()) {
    if (!is_patient()) {
      left_out_ = fmt::format("was not read: the files that reports of its owner name took more than {} s",
                              std::chrono::duration_cast<std::chrono::seconds>(patience_).count());
      late_.why_not = left_out_;
      return late_;
    }
    Entry added{ObjectFile::open(below_root(root_, path), build_id), {}};
    if (const auto* why = std::get_if<std::string>(&added.file)) added.why_not = *why;
    found = files_.emplace(std::move(key), std::move(added)).first;
    if (core::logs_debug()) {
      const std::string& why_not = found->second.why_not;
      core::log_debug(core::sanitize(path) + ": " +
                      (why_not.empty() ? "read beside the report" : core::sanitize(why_not)));
    }
  }
  return found->second;
}

std::pair<const ObjectFile*, const std::string*> ObjectFiles::place(const ObjectRecord& object) {
  static const std::string own;
  const auto at = [&](const std::string& path) {
    return std::get_if<ObjectFile>(&entry(path, object.build_id).file);
  };
  if (const ObjectFile* file = at(object.path)) return {file, &own};
  const auto places = object.build_id.empty() ? places_.end() : places_.find(object.build_id);
  if (places == places_.end()) return {nullptr, &own};
  for (const std::string& path : places->second) {
    if (path == object.path) continue;
    if (const ObjectFile* file = at(path)) return {file, &path};
  }
  return {nullptr, &own};
}

const ObjectFile* ObjectFiles::find(const ObjectRecord& object) { return place(object).first; }

const KeptImage* ObjectFiles::kept(const Report& report, const ModuleRecord& module) {
  if (module.kept.empty()) return nullptr;
  const fs::path path = fs::path(report.path).parent_path() / module.kept;
  const auto [found, first] = kept_.try_emplace({path.string(), module.content_hash});
  if (first) {
    found->second.path = path.string();
    auto opened = open_kept(path, report.owner, module);
    if (auto* const why = std::get_if<std::string>(&opened))
      found->second.why_not = std::move(*why);
    else
      found->second.file = std::get<ObjectFile>(std::move(opened));
  }
  return &found->second;
}

const std::string& ObjectFiles::why_not(const ObjectRecord& object) {
  return entry(object.path, object.build_id).why_not;
}

const std::string& ObjectFiles::elsewhere(const ObjectRecord& object) { return *place(object).second; }

std::optional<owner::Package> ObjectFiles::package(const ObjectRecord& object) {
  if (object.path.empty()) return std::nullopt;
  const auto package_at = [&](const std::string& path) {
    return is_of_root(root_, path) ? packages_.in_root(std::filesystem::path(path).relative_path().string())
                                   : packages_.of(path);
  };
  const auto [file, elsewhere] = place(object);
  if (file != nullptr) return package_at(elsewhere->empty() ? object.path : *elsewhere);
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
  const FileTime timed;
  auto& known = sources_[Key(object.path, object.build_id)];
  std::vector<std::uint64_t> wanted;
  for (const std::uint64_t address : addresses) {
    if (wanted.size() < kMaxAddresses && known.emplace(address, device_code::SourceFrames()).second)
      wanted.push_back(address);
  }
  const std::string& other = elsewhere(object);
  const device_code::HostFile file{below_root(root_, other.empty() ? object.path : other), object.build_id,
                                   root_};
  if (wanted.empty() || source_reads_ >= kMaxSourceReads || !(opened->has_dwarf() || has_debug_file(file)))
    return;
  ++source_reads_;
  auto frames = host_lines(file, wanted);
  for (std::size_t i = 0; i < wanted.size(); ++i) known[wanted[i]] = std::move(frames[i]);
}

const device_code::SourceFrames& ObjectFiles::source_at(const ObjectRecord& object, std::uint64_t address) {
  static const device_code::SourceFrames none;
  const auto file = sources_.find(Key(object.path, object.build_id));
  if (file == sources_.end()) return none;
  const auto at = file->second.find(address);
  return at == file->second.end() ? none : at->second;
}

const std::multimap<std::uint64_t, CacheSearch::Known>& CacheSearch::files_in(const std::string& folder,
                                                                              const CacheRow& cache) {
  const auto [found, first] = folders_.try_emplace(folder);
  if (!first) return found->second;
  std::error_code error;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error);
  for (const fs::recursive_directory_iterator end; !error && at != end && files_left_ != 0;
       at.increment(error)) {
    if (at.depth() >= kDeepest) at.disable_recursion_pending();
    std::error_code ignored;
    if (at->symlink_status(ignored).type() != fs::file_type::regular) continue;
    --files_left_;
    const std::uint64_t size = at->file_size(ignored);
    if (!ignored) found->second.emplace(size, Known{at->path().string(), size, &cache, folder});
  }
  return found->second;
}

std::optional<CachedCode> CacheSearch::find(std::uint64_t hash, std::uint64_t size,
                                            const Environment& environment) {
  if (hash == 0 || size == 0 || size > kMaxBytes) return std::nullopt;
  const auto known = answers_.find(hash);
  if (known != answers_.end()) return known->second;
  if (answers_.size() == kMaxQuestions) return std::nullopt;
  return answers_[hash] = look_for(hash, size, environment);
}

std::optional<CachedCode> CacheSearch::look_for(std::uint64_t hash, std::uint64_t size,
                                                const Environment& environment) {
  for (const CacheRow& row : data::caches()) {
    for (const fs::path& folder : folders_of(row, environment)) {
      const auto& files = files_in(folder.string(), row);
      for (auto at = files.lower_bound(size); at != files.end() && at->first <= size + kMaxAround; ++at) {
        if (hashed_left_ < 2 * size) return std::nullopt;
        hashed_left_ -= 2 * size;
        if (!has_content(at->second.path, hash, size)) continue;
        return CachedCode{&row, folder.string(), at->second.path,
                          entry_of(row, at->second.path, folder.string())};
      }
    }
  }
  return std::nullopt;
}

std::optional<CachedCode> CacheSearch::holding(const std::string& path, const Environment& environment) {
  for (const CacheRow& row : data::caches()) {
    for (const fs::path& folder : folders_of(row, environment)) {
      const std::string prefix = folder.lexically_normal().string() + "/";
      if (path.starts_with(prefix))
        return CachedCode{&row, folder.string(), path, entry_of(row, path, folder.string())};
    }
  }
  return std::nullopt;
}

}  // namespace kshim::input
