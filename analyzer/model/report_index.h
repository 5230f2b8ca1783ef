// SPDX-License-Identifier: Apache-2.0
// A report's records joined by their ids, and the files behind its objects.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "analyzer/model/cache_search.h"
#include "analyzer/model/object_file.h"
#include "analyzer/model/python_package.h"
#include "analyzer/reader/report.h"

namespace kshim::analysis {

/// Files that reports name, opened once for all reports.
class ObjectFiles {
 public:
  /// nullptr where the file cannot be used; why_not() then tells.
  const ObjectFile* find(const ObjectRecord& object);
  const std::string& why_not(const ObjectRecord& object);
  /// The Python package that the file belongs to, where it is installed on this machine.
  const std::optional<PythonPackage>& package(const std::string& path);
  CacheSearch& caches() { return caches_; }

 private:
  using Entry = std::variant<ObjectFile, std::string>;
  Entry& entry(const ObjectRecord& object);
  std::map<std::pair<std::string, std::string>, Entry> files_;
  std::map<std::string, std::optional<PythonPackage>> packages_;
  CacheSearch caches_;
};

class ReportIndex {
 public:
  explicit ReportIndex(const Report& report);
  const Report& report() const { return report_; }
  const ObjectRecord* object(std::optional<std::uint64_t> id) const;
  const ModuleRecord* module(std::optional<std::uint64_t> id) const;
  const PackageRecord* package(std::uint64_t object) const;
  /// The device of that ordinal; the only one where the ordinal is not known.
  const DeviceRecord* device(std::optional<unsigned> ordinal) const;
  /// The gap that speaks of this module of this object on this device; of several, the one written nearest to
  /// `line`.
  const GapRecord* gap(std::optional<std::uint64_t> object, std::optional<std::uint64_t> offset,
                       std::optional<unsigned> device, std::uint32_t line) const;
  /// Whether a module of this object was loaded on this device.
  bool loaded(std::uint64_t object, std::optional<unsigned> device) const;
  /// Whether a Python frame is on the stack of any failure, and one of PyTorch's; whether a file of it is mapped.
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
  std::set<std::pair<std::uint64_t, std::optional<unsigned>>> loaded_;
  bool python_ = false;
  bool torch_ = false;
  std::unordered_set<std::uint64_t> launch_failed_objects_;
  std::unordered_set<std::uint64_t> launch_failed_modules_;
};

}  // namespace kshim::analysis
