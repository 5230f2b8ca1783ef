// SPDX-License-Identifier: Apache-2.0
// Writes one record as one line of JSON into a fixed buffer. No heap, no locale, no exceptions, because it
// runs inside other programs. Field names and their kinds come from schema.def and are checked by the
// compiler: a field of another record, or a string where the schema says a number, does not build.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

#include "kshim/report/redact.h"

namespace kshim::report {

enum class RecordType : std::uint8_t {
#define KSHIM_RECORD(type, meaning) type,
#define KSHIM_FIELD(record, field, kind, required, meaning)
#include "kshim/report/schema.def"
#undef KSHIM_RECORD
#undef KSHIM_FIELD
};
/// RECORD_FIELD, such as Field::failure_kernel.
enum class Field : std::uint8_t {
#define KSHIM_RECORD(type, meaning)
#define KSHIM_FIELD(record, field, kind, required, meaning) record##_##field,
#include "kshim/report/schema.def"
#undef KSHIM_RECORD
#undef KSHIM_FIELD
};
enum class Kind : std::uint8_t {
  kind_string,
  kind_text,
  kind_uint,
  kind_number,
  kind_bool,
  kind_strings,
  kind_texts,
  kind_env,
  kind_images,
  kind_layers,
  kind_frames,
  kind_python,
  kind_processes
};
constexpr Content content_of(Kind kind) noexcept {
  return kind == Kind::kind_text || kind == Kind::kind_texts ? Content::text : Content::identifier;
}
struct FieldShape {
  RecordType record;
  std::string_view name;
  Kind kind;
  bool required;
};
inline constexpr FieldShape kFieldShapes[] = {
#define KSHIM_RECORD(type, meaning)
#define KSHIM_FIELD(record, field, kind, required, meaning) \
  {RecordType::record, #field, Kind::kind_##kind, (required) != 0},
#include "kshim/report/schema.def"
#undef KSHIM_RECORD
#undef KSHIM_FIELD
};
constexpr const FieldShape& shape_of(Field field) noexcept {
  return kFieldShapes[static_cast<std::size_t>(field)];
}
/// Names of entry points and architectures, hashes: a module record has no other text.
constexpr bool is_own_text(std::string_view field) noexcept {
  return field == "api" || field == "selected" || field == "content_hash";
}
constexpr std::string_view name_of(RecordType type) noexcept {
  constexpr std::string_view kNames[] = {
#define KSHIM_RECORD(type, meaning) #type,
#define KSHIM_FIELD(record, field, kind, required, meaning)
#include "kshim/report/schema.def"
#undef KSHIM_RECORD
#undef KSHIM_FIELD
  };
  return kNames[static_cast<std::size_t>(type)];
}

/// Elements of the list kinds. A string_view without data is written as null.
struct EnvRow {
  std::string_view name, value;
};
struct ImageRow {
  std::string_view kind, arch, isa;
  std::uint64_t count, bytes;
};
struct LayerRow {
  std::string_view layer, api;
  std::uint64_t code;
  std::string_view name;
};
struct FrameRow {
  std::string_view object, build_id;
  std::uint64_t offset;
  std::string_view symbol;
};
struct PythonRow {
  std::string_view file;
  std::uint64_t line;  ///< from 1; 0 = unknown, written as null
  std::string_view function;
};
struct ProcessRow {
  std::uint64_t pid, start;
  std::string_view exe;
};
struct Milliseconds {
  std::uint64_t nanoseconds;
};

/// The user that all later texts hide, besides secrets; nullptr: none. The caller owns it and keeps it alive.
void hide(const Person* person) noexcept;

/// JSON text in a fixed buffer. After a text that does not fit, full() is true and nothing is written.
class JsonBuffer {
 public:
  explicit JsonBuffer(std::span<char> storage) noexcept : storage_(storage) {}
  void text(std::string_view raw) noexcept;  ///< as it stands
  /// The same of a size that the compiler knows: a few moves.
  template <std::size_t kSize>
  void text(const std::array<char, kSize>& raw) noexcept {
    if (full_ || kSize > room()) {
      full_ = true;
      return;
    }
    std::memcpy(storage_.data() + size_, raw.data(), kSize);
    size_ += kSize;
  }
  /// Quoted, redacted (redact.h) and escaped; bytes that are not UTF-8 become U+FFFD; cut after `limit`
  /// bytes; null without data.
  void string(std::string_view value, Content content, std::size_t limit) noexcept;
  /// The same of text that is the shim's own, in which there is nothing to redact.
  void own_string(std::string_view value, std::size_t limit) noexcept;
  void number(std::uint64_t value) noexcept;
  void milliseconds(Milliseconds value) noexcept;  ///< three decimals
  bool full() const noexcept { return full_; }
  std::size_t size() const noexcept { return size_; }
  std::size_t room() const noexcept { return storage_.size() - size_; }
  void rewind(std::size_t size) noexcept { size_ = size, full_ = false; }
  std::string_view view() const noexcept { return {storage_.data(), size_}; }

 private:
  void put(char character) noexcept;
  bool escaped(std::string_view value, std::size_t limit) noexcept;  ///< false where it was cut
  std::span<char> storage_;
  std::size_t size_ = 0;
  bool full_ = false;
};

/// A list stops this many bytes before the end of the buffer, so that the fields after it still fit.
constexpr std::size_t kTailRoom = 4096;
/// Longest string that is written whole. Paths end at 4096; mangled names of CUTLASS kernels reach a few
/// thousand.
constexpr std::size_t kStringLimit = 8192;
/// The same inside list elements, which are many.
constexpr std::size_t kElementStringLimit = 2048;

void write_element(JsonBuffer& out, std::string_view row, Content content) noexcept;
void write_element(JsonBuffer& out, const ImageRow& row) noexcept;
void write_element(JsonBuffer& out, const LayerRow& row) noexcept;
void write_element(JsonBuffer& out, const FrameRow& row) noexcept;
void write_element(JsonBuffer& out, const PythonRow& row) noexcept;
void write_element(JsonBuffer& out, const ProcessRow& row) noexcept;
void write_env(JsonBuffer& out, std::span<const EnvRow> rows) noexcept;

/// Concatenated at compile time: most of a record is constant text.
template <std::size_t kSize>
constexpr std::array<char, kSize> joined(std::string_view a, std::string_view b,
                                         std::string_view c) noexcept {
  std::array<char, kSize> out{};
  std::size_t size = 0;
  for (const std::string_view part : {a, b, c})
    for (const char character : part) out[size++] = character;
  return out;
}

/// `{"type":...,"seq":...,"t":...` then fields in the order they are added, then finish().
template <RecordType kType>
class Record {
 public:
  Record(std::span<char> storage, std::uint64_t seq, std::uint64_t t) noexcept : out_(storage) {
    out_.text(kFirst);
    out_.number(seq);
    out_.text(",\"t\":");
    out_.number(t);
  }

  template <Field kField>
  Record& add(std::string_view value) noexcept {
    constexpr Content kContent = content_of(shape_of(kField).kind);
    begin<kField, kContent == Content::text ? Kind::kind_text : Kind::kind_string>();
    if constexpr (is_own_text(shape_of(kField).name))
      out_.own_string(value, kStringLimit);
    else
      out_.string(value, kContent, kStringLimit);
    return *this;
  }
  template <Field kField>
  Record& add(const char* value) noexcept {
    return add<kField>(std::string_view(value));
  }
  template <Field kField>
  Record& add(std::uint64_t value) noexcept {
    begin<kField, Kind::kind_uint>();
    out_.number(value);
    return *this;
  }
  template <Field kField>
  Record& add(std::optional<std::uint64_t> value) noexcept {
    begin<kField, Kind::kind_uint>();
    if (value)
      out_.number(*value);
    else
      out_.text("null");
    return *this;
  }
  template <Field kField>
  Record& add(Milliseconds value) noexcept {
    begin<kField, Kind::kind_number>();
    out_.milliseconds(value);
    return *this;
  }
  template <Field kField, class Bool>
  requires std::is_same_v<Bool, bool> Record& add(Bool value) noexcept {
    begin<kField, Kind::kind_bool>();
    out_.text(value ? "true" : "false");
    return *this;
  }
  template <Field kField>
  Record& add(std::optional<bool> value) noexcept {
    begin<kField, Kind::kind_bool>();
    out_.text(!value ? "null" : *value ? "true" : "false");
    return *this;
  }
  template <Field kField>
  Record& add(std::span<const std::string_view> rows) noexcept {
    constexpr Content kContent = content_of(shape_of(kField).kind);
    return list < kField, kContent == Content::text ? Kind::kind_texts : Kind::kind_strings > (rows);
  }
  template <Field kField>
  Record& add(std::span<const ImageRow> rows) noexcept {
    return list<kField, Kind::kind_images>(rows);
  }
  template <Field kField>
  Record& add(std::span<const LayerRow> rows) noexcept {
    return list<kField, Kind::kind_layers>(rows);
  }
  template <Field kField>
  Record& add(std::span<const FrameRow> rows) noexcept {
    return list<kField, Kind::kind_frames>(rows);
  }
  template <Field kField>
  Record& add(std::span<const PythonRow> rows) noexcept {
    return list<kField, Kind::kind_python>(rows);
  }
  template <Field kField>
  Record& add(std::span<const ProcessRow> rows) noexcept {
    return list<kField, Kind::kind_processes>(rows);
  }
  template <Field kField>
  Record& add(std::span<const EnvRow> rows) noexcept {
    begin<kField, Kind::kind_env>();
    write_env(out_, rows);
    return *this;
  }
  template <Field kField>
  Record& null() noexcept {
    static_assert(!shape_of(kField).required, "the schema says that this field is never null");
    begin<kField, shape_of(kField).kind>();
    out_.text("null");
    return *this;
  }

  /// The whole line, or nothing if even the shortened record does not fit. Never part of a line.
  std::string_view finish() noexcept {
    out_.text("}\n");
    return out_.full() ? std::string_view() : out_.view();
  }

 private:
  template <Field kField, Kind kKind>
  void begin() noexcept {
    static_assert(shape_of(kField).record == kType, "field of another record");
    static_assert(shape_of(kField).kind == kKind, "schema.def gives this field another kind");
    static constexpr auto kLead =
        joined<2 + shape_of(kField).name.size() + 2>(",\"", shape_of(kField).name, "\":");
    out_.text(kLead);
  }
  template <Field kField, Kind kKind, class Row>
  Record& list(std::span<const Row> rows) noexcept {
    begin<kField, kKind>();
    out_.text("[");
    bool first = true;
    for (const Row& row : rows) {
      const std::size_t before = out_.size();
      if (!first) out_.text(",");
      if constexpr (std::is_same_v<Row, std::string_view>)
        write_element(out_, row, content_of(kKind));
      else
        write_element(out_, row);
      if (out_.full() || out_.room() < kTailRoom) {
        out_.rewind(before);
        break;
      }
      first = false;
    }
    out_.text("]");
    return *this;
  }
  static constexpr auto kFirst =
      joined<9 + name_of(kType).size() + 8>("{\"type\":\"", name_of(kType), "\",\"seq\":");
  JsonBuffer out_;
};

}  // namespace kshim::report
