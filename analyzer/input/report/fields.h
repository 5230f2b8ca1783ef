// SPDX-License-Identifier: Apache-2.0
// The values of one record, found by the schema's own list (kshim/report/schema.def): in one walk over the
// line, which also tells what is there twice, of another kind or larger than anything that a shim writes.
#pragma once
#include <simdjson.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/input/report/report.h"
#include "kshim/report/writer.h"

namespace kshim::analysis {

/// Longer texts are cut: the shim writes 8 KiB at most.
constexpr std::size_t kLongestText = std::size_t{64} << 10;
/// Elements of one list that are read; no real stack or list of kernels is longer.
constexpr std::size_t kMostElements = 65536;

class Fields {
 public:
  Fields(report::RecordType type, simdjson::dom::object from);

  /// What `~` at the start of a text stands for from here on (KSHIM_PRIVATE); empty: nothing.
  void set_home(const std::string& home) { home_ = home; }

  std::string text(report::Field field) const;
  std::optional<std::uint64_t> number(report::Field field) const;
  /// A number of at most 32 bits.
  std::optional<unsigned> small(report::Field field) const;
  int code(report::Field field) const;
  std::optional<bool> truth(report::Field field) const;
  double decimal(report::Field field) const;
  std::vector<std::string> texts(report::Field field) const;
  std::vector<PythonFrame> python(report::Field field) const;
  std::vector<NativeFrame> native(report::Field field) const;
  std::vector<Layer> layers(report::Field field) const;
  /// nullopt where there is no list.
  std::optional<std::vector<ImageEntry>> images(report::Field field) const;
  std::map<std::string, std::string> environment(report::Field field) const;

  std::optional<std::uint64_t> seq() const { return seq_; }
  /// What was odd about the values that were asked for, as a clause; empty where nothing was.
  std::string odd() const;

 private:
  using Element = simdjson::dom::element;
  static constexpr std::size_t kMostFields = 24;

  const Element* find(report::Field field) const;
  void take(std::size_t index, Element value);
  std::string cut(std::string_view text) const;
  std::string text_in(simdjson::dom::object from, std::string_view key) const;
  std::uint64_t number_in(simdjson::dom::object from, std::string_view key, std::uint64_t otherwise) const;
  template <class Visit>
  bool each(report::Field field, Visit&& visit) const;
  template <class Visit>
  bool each_object(report::Field field, Visit&& visit) const;

  report::RecordType type_;
  std::size_t first_ = 0;  ///< of the record's rows in report::kFieldShapes
  std::size_t count_ = 0;
  std::array<Element, kMostFields> values_;
  std::uint32_t known_ = 0;    ///< bit i: values_[i] is there and of its kind
  std::uint32_t twice_ = 0;    ///< bit i: the key is there more than once
  std::uint32_t strange_ = 0;  ///< bit i: of another kind
  bool type_twice_ = false;
  std::optional<std::uint64_t> seq_;
  std::string_view home_;
  mutable bool cut_ = false;       ///< a text was too long
  mutable bool listed_ = false;    ///< a list was too long
  mutable bool nonsense_ = false;  ///< a number within a list is none that can be
};

}  // namespace kshim::analysis
