// SPDX-License-Identifier: Apache-2.0
// The values of one record, found by the schema's own list (kshim/report/schema.def): in one walk over the
// line, which also tells what is there twice, of another kind or larger than anything that a shim writes.
#pragma once
#include <simdjson.h>

#include "analyzer/input/report/report.h"

namespace kshim::input {

/// Longer texts are cut: the shim writes 8 KiB at most.
constexpr std::size_t kMaxTextLength = std::size_t{64} << 10;
/// Elements of one list that are read; no real stack or list of kernels is longer.
constexpr std::size_t kMaxElements = 65536;

class Fields {
 public:
  Fields(report::RecordType type, simdjson::dom::object from);

  /// What `~` at the start of a text stands for from here on (KSHIM_PRIVATE); empty: nothing.
  void set_home(const std::string& home) { home_ = home; }

  // Each reads the value of a field into the type that holds it in memory, which stays as it is where the
  // record has none, or one that does not fit.
  void get(report::Field field, std::string& out) const;
  void get(report::Field field, std::uint64_t& out) const { value(field, out); }
  void get(report::Field field, bool& out) const { value(field, out); }
  void get(report::Field field, double& out) const { value(field, out); }
  void get(report::Field field, std::vector<std::string>& out) const;
  void get(report::Field field, std::vector<PythonFrame>& out) const;
  void get(report::Field field, std::vector<NativeFrame>& out) const;
  void get(report::Field field, std::vector<Layer>& out) const;
  void get(report::Field field, std::vector<ImageEntry>& out) const;
  void get(report::Field field, std::vector<ProcessEntry>& out) const;
  void get(report::Field field, std::map<std::string, std::string>& out) const;
  template <class T>
  void get(report::Field field, std::optional<T>& out) const {
    if (find(field) != nullptr) get(field, out.emplace());
  }
  std::optional<std::uint64_t> number(report::Field field) const {
    std::optional<std::uint64_t> out;
    get(field, out);
    return out;
  }

  std::optional<std::uint64_t> seq() const { return seq_; }
  /// What was odd about the values that were asked for, as a clause; empty where nothing was.
  std::string odd() const;

 private:
  using Element = simdjson::dom::element;
  static constexpr std::size_t kMaxFields = 24;

  const Element* find(report::Field field) const;
  void take(std::size_t index, Element value);
  std::string cut(std::string_view text, report::Content content) const;
  std::string text_in(simdjson::dom::object from, std::string_view key) const;
  std::uint64_t number_in(simdjson::dom::object from, std::string_view key, std::uint64_t otherwise) const;
  template <class T>
  void value(report::Field field, T& out) const;
  template <class Item, class Visit>
  void each(report::Field field, Visit&& visit) const;

  report::RecordType type_;
  std::size_t first_ = 0;  ///< of the record's rows in report::kFieldShapes
  std::size_t count_ = 0;
  std::array<Element, kMaxFields> values_;
  std::uint32_t known_ = 0;    ///< bit i: values_[i] is there and of its kind
  std::uint32_t twice_ = 0;    ///< bit i: the key is there more than once
  std::uint32_t strange_ = 0;  ///< bit i: of another kind
  bool type_twice_ = false;
  std::optional<std::uint64_t> seq_;
  std::string_view home_;
  mutable bool cut_ = false;       ///< a text was too long
  mutable bool listed_ = false;    ///< a list was too long
  mutable bool nonsense_ = false;  ///< a number is none that can be
};

}  // namespace kshim::input
