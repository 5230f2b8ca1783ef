// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/report/fields.h"

#include <limits>

#include "analyzer/core/redacted.h"
#include "analyzer/core/text.h"

namespace kshim::input {
namespace {

using report::Content;
using report::Field;
using report::FieldShape;
using report::Kind;
using report::RecordType;
using simdjson::SUCCESS;
using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::element_type;
using simdjson::dom::object;

constexpr std::size_t kRecords =
    std::size(report::kFieldShapes) == 0 ? 0 : static_cast<std::size_t>(RecordType::end) + 1;

struct Range {
  std::size_t first = 0;
  std::size_t count = 0;
};

// The rows of a record stand together in the schema's list.
constexpr std::array<Range, kRecords> kRanges = [] {
  std::array<Range, kRecords> out{};
  for (std::size_t i = 0; i < std::size(report::kFieldShapes); ++i) {
    Range& range = out[static_cast<std::size_t>(report::kFieldShapes[i].record)];
    if (range.count++ == 0) range.first = i;
  }
  return out;
}();

bool fits(Kind kind, element value) {
  switch (kind) {
    case Kind::kind_string:
    case Kind::kind_text:
      return value.is<std::string_view>();
    case Kind::kind_uint:
      return value.is<std::uint64_t>();
    case Kind::kind_number: {
      double number = 0;
      return value.get(number) == SUCCESS && number >= 0;
    }
    case Kind::kind_bool:
      return value.is<bool>();
    case Kind::kind_env:
      return value.type() == element_type::OBJECT;
    default:
      return value.type() == element_type::ARRAY;
  }
}

constexpr std::string_view kWords[] = {
    "a text", "a text",   "a whole number from 0 up", "a number from 0 up", "true or false", "a list",
    "a list", "an object"};
std::string_view words(Kind kind) {
  const auto row = static_cast<std::size_t>(kind);
  return row < std::size(kWords) ? kWords[row] : "a list";
}

Content content_of(Field field) { return report::content_of(report::shape_of(field).kind); }

void add(std::string& to, std::string_view clause) {
  if (!to.empty()) to += ", ";
  to += clause;
}

}  // namespace

Fields::Fields(RecordType type, object from) : type_(type) {
  static_assert(std::ranges::all_of(kRanges, [](const Range& range) { return range.count <= kMaxFields; }));
  const Range range = kRanges[static_cast<std::size_t>(type)];
  first_ = range.first;
  count_ = range.count;
  const std::span<const FieldShape> shapes(report::kFieldShapes + first_, count_);
  // The shim writes them in this order: the next one is nearly always the one that is expected.
  std::size_t next = 0;
  std::size_t types = 0;
  for (const auto field : from) {
    std::size_t index = next;
    if (index < count_ && shapes[index].name == field.key) {
      // as expected
    } else if (field.key == "t") {
      continue;
    } else if (field.key == "seq") {
      std::uint64_t seq = 0;
      if (!seq_ && field.value.get(seq) == SUCCESS) seq_ = seq;
      continue;
    } else if (field.key == "type") {
      type_twice_ = ++types > 1;
      continue;
    } else {
      index = static_cast<std::size_t>(
          std::ranges::find_if(shapes, [&](const FieldShape& shape) { return shape.name == field.key; }) -
          shapes.begin());
    }
    if (index == count_) continue;
    take(index, field.value);
    next = index + 1;
  }
}

void Fields::take(std::size_t index, element value) {
  const std::uint32_t bit = 1U << index;
  if ((twice_ & bit) != 0) return;
  if ((known_ & bit) != 0 || (strange_ & bit) != 0) {
    twice_ |= bit;
    return;
  }
  if (value.is_null()) return;
  // Codes, ordinals and the like: what is larger is none.
  static constexpr std::string_view kSmall[] = {"code",   "device", "ordinal", "rank",
                                                "result", "signal", "status"};
  if (std::uint64_t number = 0; value.get(number) == SUCCESS && number > INT32_MAX &&
                                core::contains(kSmall, report::kFieldShapes[first_ + index].name)) {
    nonsense_ = true;
    return;
  }
  if (!fits(report::kFieldShapes[first_ + index].kind, value)) {
    strange_ |= bit;
    return;
  }
  values_[index] = value;
  known_ |= bit;
}

const element* Fields::find(Field field) const {
  const std::size_t index = static_cast<std::size_t>(field) - first_;
  return index < count_ && (known_ >> index & 1U) != 0 ? &values_[index] : nullptr;
}

std::string Fields::cut(std::string_view text, report::Content content) const {
  if (!home_.empty() && (text == "~" || text.starts_with("~/")) && text.size() <= kMaxTextLength)
    return std::string(home_).append(core::redacted(text.substr(1), content));
  if (text.size() <= kMaxTextLength) return core::redacted(text, content);
  cut_ = true;
  std::size_t size = kMaxTextLength;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0U) == 0x80U)
    --size;  // not inside a letter
  return core::redacted(text.substr(0, size), content);
}

void Fields::get(Field field, std::string& out) const {
  const element* value = find(field);
  std::string_view found;
  if (value != nullptr && value->get(found) == SUCCESS) out = cut(found, content_of(field));
}

template <class T>
void Fields::value(Field field, T& out) const {
  const element* found = find(field);
  T value{};
  if (found != nullptr && found->get(value) == SUCCESS) out = value;
}
template void Fields::value(Field, std::uint64_t&) const;
template void Fields::value(Field, bool&) const;
template void Fields::value(Field, double&) const;

template <class Item, class Visit>
void Fields::each(Field field, Visit&& visit) const {
  const element* value = find(field);
  array values;
  if (value == nullptr || value->get(values) != SUCCESS) return;
  std::size_t left = kMaxElements;
  for (const element item : values) {
    if (left-- == 0) {
      listed_ = true;
      break;
    }
    if (Item inner; item.get(inner) == SUCCESS)
      visit(inner);
    else
      nonsense_ = true;
  }
}

std::string Fields::text_in(object from, std::string_view key) const {
  std::string_view found;
  return from[key].get(found) == SUCCESS ? cut(found, Content::identifier) : std::string();
}

std::uint64_t Fields::number_in(object from, std::string_view key, std::uint64_t otherwise) const {
  element value;
  if (from[key].get(value) != SUCCESS || value.is_null()) return otherwise;
  std::uint64_t found = 0;
  if (value.get(found) == SUCCESS) return found;
  nonsense_ = true;
  return otherwise;
}

void Fields::get(Field field, std::vector<std::string>& out) const {
  each<std::string_view>(field, [&](std::string_view item) { out.push_back(cut(item, content_of(field))); });
}

// Elements that say nothing are not kept: the memory that a list takes stays in proportion to its text.
void Fields::get(Field field, std::vector<PythonFrame>& out) const {
  each<object>(field, [&](object from) {
    const std::uint64_t line = number_in(from, "line", 0);
    PythonFrame frame{text_in(from, "file"),
                      line <= std::numeric_limits<unsigned>::max() ? static_cast<unsigned>(line) : 0,
                      text_in(from, "function")};
    if (!frame.file.empty() || !frame.function.empty()) out.push_back(std::move(frame));
  });
}

void Fields::get(Field field, std::vector<ProcessEntry>& out) const {
  each<object>(field, [&](object from) {
    out.push_back({number_in(from, "pid", 0), number_in(from, "start", 0), text_in(from, "exe")});
  });
}

void Fields::get(Field field, std::vector<NativeFrame>& out) const {
  each<object>(field, [&](object from) {
    NativeFrame frame{text_in(from, "object"), text_in(from, "build_id"), number_in(from, "offset", 0),
                      text_in(from, "symbol")};
    if (!frame.object.empty() || !frame.symbol.empty()) out.push_back(std::move(frame));
  });
}

void Fields::get(Field field, std::vector<Layer>& out) const {
  each<object>(field, [&](object from) {
    std::uint64_t code = number_in(from, "code", 0);
    if (code > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) {
      nonsense_ = true;
      code = 0;
    }
    Layer layer{text_in(from, "layer"), text_in(from, "api"), static_cast<int>(code), text_in(from, "name")};
    if (layer.code != 0 || !layer.layer.empty() || !layer.api.empty()) out.push_back(std::move(layer));
  });
}

void Fields::get(Field field, std::vector<ImageEntry>& out) const {
  each<object>(field, [&](object from) {
    ImageEntry image{text_in(from, "kind"), text_in(from, "arch"), text_in(from, "isa"),
                     number_in(from, "count", 1), number_in(from, "bytes", 0)};
    if (!image.arch.empty()) out.push_back(std::move(image));
  });
}

void Fields::get(Field field, std::map<std::string, std::string>& out) const {
  constexpr std::size_t kMaxVariables = 1024;
  const element* value = find(field);
  object from;
  if (value == nullptr || value->get(from) != SUCCESS) return;
  for (const auto variable : from) {
    std::string_view text;
    if (variable.value.get(text) != SUCCESS) {
      nonsense_ = nonsense_ || !variable.value.is_null();
    } else if (out.size() == kMaxVariables) {
      listed_ = true;
      break;
    } else {
      out.emplace(cut(variable.key, Content::identifier), cut(text, Content::text));
    }
  }
}

std::string Fields::odd() const {
  if (twice_ == 0 && strange_ == 0 && !type_twice_ && !cut_ && !listed_ && !nonsense_) return {};
  std::string out;
  if (type_twice_) add(out, "`type` is there twice, the first counts");
  for (std::size_t index = 0; index < count_; ++index) {
    const FieldShape& shape = report::kFieldShapes[first_ + index];
    if ((twice_ >> index & 1U) != 0)
      add(out, fmt::format("`{}` is there twice, the first counts", shape.name));
    if ((strange_ >> index & 1U) != 0) add(out, fmt::format("`{}` is not {}", shape.name, words(shape.kind)));
  }
  if (nonsense_) add(out, "a value in it is out of range or of another kind, and ignored");
  if (cut_) add(out, fmt::format("a text of more than {} KiB is cut", kMaxTextLength >> 10));
  if (listed_) add(out, "a list in it is longer than what is read");
  return fmt::format("`{}`: {}", report::name_of(type_), out);
}

}  // namespace kshim::input
