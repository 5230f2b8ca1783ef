// SPDX-License-Identifier: Apache-2.0
// A report's records joined by their ids, and the files behind its objects.
#pragma once
#include <unordered_set>

#include "analyzer/data/tables.h"
#include "analyzer/device_code/object_file.h"
#include "analyzer/input/report/report.h"
#include "analyzer/owner/finder.h"

namespace kshim::input {

// Device code that came from memory may have come from a cache before: the shim wrote its hash and size, and
// the folders where programs keep what they compiled are known (the table caches). Only on the machine that
// the report is of.

struct CachedCode {
  const data::CacheRow* cache = nullptr;
  std::string folder;  ///< of the cache
  std::string file;
  std::string entry;  ///< what to delete: the file, or the folder that belongs to the kernel
};

/// Finds files by their content. Folders are walked once, symbolic links and what is not a plain file passed
/// over.
class CacheSearch {
 public:
  /// `environment`: the process's, as the report has it.
  using Environment = std::map<std::string, std::string>;
  std::optional<CachedCode> find(std::uint64_t hash, std::uint64_t size, const Environment& environment);
  /// The same for code that was loaded as a file.
  static std::optional<CachedCode> holding(const std::string& path, const Environment& environment);

 private:
  struct Known {
    std::string path;
    std::uint64_t size = 0;
    const data::CacheRow* cache = nullptr;
    std::string folder;
  };
  const std::multimap<std::uint64_t, Known>& files_in(const std::string& folder, const data::CacheRow& cache);
  std::optional<CachedCode> look_for(std::uint64_t hash, std::uint64_t size, const Environment& environment);
  std::map<std::string, std::multimap<std::uint64_t, Known>> folders_;
  std::map<std::uint64_t, std::optional<CachedCode>> answers_;
  // For all that one analysis asks: a report names the folders, and reports may be hostile.
  std::size_t files_left_ = 50'000;
  std::uint64_t hashed_left_ = std::uint64_t{1} << 30;
};

/// An image that the driver refused, which the shim has kept beside the report.
struct KeptImage {
  std::string path;
  std::optional<device_code::ObjectFile> file = {};
  std::string why_not = {};  ///< a clause: why it cannot be used
};

/// Files that reports name, opened once for all reports. Not for several threads at once.
class ObjectFiles {
 public:
  /// `root`: where the databases of packages and the debug files of the system are looked up. The
  /// files named in one user's reports may take `patience` of reading time in total, so that one report
  /// cannot take hours.
  explicit ObjectFiles(const std::filesystem::path& root = "/",
                       device_code::FileTime::Clock::duration patience = std::chrono::hours(1))
      : root_(root), patience_(patience), packages_(root) {}
  /// What follows is asked for this report. Remembers where else it has seen the files that it names, by
  /// build id.
  void learn(const Report& report);
  /// Forgets all earlier reports.
  void forget();
  /// What follows is asked for reports of this user, or for none.
  void charge(std::optional<std::uint32_t> owner);
  /// Why files of the report that was learned last were not read, as a clause; empty where all that were
  /// asked for were.
  const std::string& left_out() const { return left_out_; }
  /// The very file of the record: by path and build id, else by build id where the report names another path.
  /// nullptr where there is none; why_not() then tells.
  const device_code::ObjectFile* find(const ObjectRecord& object);
  /// The image that the module record names as kept; nullptr where it names none.
  const KeptImage* kept(const Report& report, const ModuleRecord& module);
  /// Why the file at the record's own path cannot be used, as a clause; empty where it can.
  const std::string& why_not(const ObjectRecord& object);
  /// Where find() found it, if not at its own path; else empty.
  const std::string& elsewhere(const ObjectRecord& object);
  /// The package that the file belongs to, where it is on this machine. If the file has changed since, only
  /// the name: the installed version is a different one.
  std::optional<owner::Package> package(const ObjectRecord& object);
  owner::Finder& packages() { return packages_; }
  /// Where the links of a path lead; empty where there is no such file.
  const std::string& real_path(const std::string& path);
  /// Asks the file's DWARF for link-time addresses, together.
  void read_sources(const ObjectRecord& object, const std::vector<std::uint64_t>& addresses);
  /// What read_sources() found at an address, innermost function first; mostly empty.
  const device_code::SourceFrames& source_at(const ObjectRecord& object, std::uint64_t address);
  CacheSearch& caches() { return caches_; }

 private:
  struct Entry {
    std::variant<device_code::ObjectFile, std::string> file;
    std::string why_not;
  };
  using Key = std::pair<std::string, std::string>;  ///< path, build id
  const Entry& entry(const std::string& path, const std::string& build_id);
  /// The file, and where it lies if not at its own path.
  std::pair<const device_code::ObjectFile*, const std::string*> place(const ObjectRecord& object);
  bool is_patient() const;
  void note_environments(const Report& report);
  std::filesystem::path root_;
  device_code::FileTime::Clock::duration patience_;
  std::map<std::uint32_t, device_code::FileTime::Clock::duration> spent_;  ///< by the owners of reports
  device_code::FileTime::Clock::duration begin_ =
      device_code::FileTime::spent();   ///< of the report that was learned last
  std::optional<std::uint32_t> owner_;  ///< its owner
  std::string left_out_;
  Entry late_{std::string(), {}};
  std::map<Key, Entry> files_;
  std::map<Key, KeptImage> kept_;                                     ///< by path and content hash
  std::unordered_map<std::string, std::vector<std::string>> places_;  ///< paths by build id
  std::map<Key, std::map<std::uint64_t, device_code::SourceFrames>> sources_;
  std::size_t source_reads_ = 0;
  std::unordered_map<std::string, std::string> real_paths_;
  owner::Finder packages_;
  CacheSearch caches_;
};

/// What refers to a file beside the report's own objects.
ObjectRecord object_record(std::string path, std::string build_id);
bool is_of_this_machine(const Report& report);

class ReportIndex {
 public:
  explicit ReportIndex(const Report& report);
  const Report& report() const { return report_; }
  const ObjectRecord* object(std::optional<std::uint64_t> id) const;
  const ModuleRecord* module(std::optional<std::uint64_t> id) const;
  const PackageRecord* package(std::uint64_t object) const;
  /// The device of that ordinal; the only one where the ordinal is not known.
  const DeviceRecord* device(std::optional<std::uint64_t> ordinal) const;
  /// The gap that speaks of this module of this object on this device; of several, the one written nearest to
  /// `line`, or one that names more of the same module's kernels.
  const GapRecord* gap(std::optional<std::uint64_t> object, std::optional<std::uint64_t> offset,
                       std::optional<std::uint64_t> device, std::uint32_t line) const;
  /// Whether a module of this object was loaded on this device.
  bool loaded(std::uint64_t object, std::optional<std::uint64_t> device) const;
  /// Whether a Python frame is on the stack of any failure, and one of PyTorch's; whether a file of it is
  /// mapped.
  bool has_python() const { return python_; }
  bool has_torch() const { return torch_; }
  /// Whether a launch of this module, or of any code in this object, failed.
  bool launch_failed(std::optional<std::uint64_t> object, std::optional<std::uint64_t> module) const;

 private:
  void note_languages();
  const Report& report_;
  std::unordered_map<std::uint64_t, const ObjectRecord*> objects_;
  std::unordered_map<std::uint64_t, const ModuleRecord*> modules_;
  std::unordered_map<std::uint64_t, const PackageRecord*> packages_;
  using Id = std::optional<std::uint64_t>;
  using Gaps = std::vector<const GapRecord*>;  ///< in the order of the report
  std::map<Id, Gaps> gaps_;                    ///< of devices, by object
  std::map<std::pair<Id, Id>, Gaps> gaps_at_;  ///< the same by object and offset
  /// By object, offset and device: of one module's gaps the one that names most kernels.
  std::map<std::tuple<Id, Id, std::optional<std::uint64_t>>, const GapRecord*> fullest_;
  std::set<std::pair<std::uint64_t, std::optional<std::uint64_t>>> loaded_;
  bool python_ = false;
  bool torch_ = false;
  std::unordered_set<std::uint64_t> launch_failed_objects_;
  std::unordered_set<std::uint64_t> launch_failed_modules_;
};

}  // namespace kshim::input
