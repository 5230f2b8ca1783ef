// SPDX-License-Identifier: Apache-2.0
// Tables expanded from schema.def, for the reader, the generated documents and the tests.
#pragma once
#include <span>
#include <string_view>

namespace kshim::report {

constexpr std::string_view kReportSchema = "kshim-report/1";

struct FieldRow {
  std::string_view record;
  std::string_view field;
  std::string_view kind;
  bool required;
  std::string_view meaning;
};
struct RecordRow {
  std::string_view type;
  std::string_view meaning;
};

inline constexpr RecordRow kRecords[] = {
#define KSHIM_RECORD(type, meaning) {#type, meaning},
#define KSHIM_FIELD(record, field, kind, required, meaning)
#include "kshim/report/schema.def"
#undef KSHIM_RECORD
#undef KSHIM_FIELD
};
inline constexpr FieldRow kFields[] = {
#define KSHIM_RECORD(type, meaning)
#define KSHIM_FIELD(record, field, kind, required, meaning) {#record, #field, #kind, required, meaning},
#include "kshim/report/schema.def"
#undef KSHIM_RECORD
#undef KSHIM_FIELD
};

}  // namespace kshim::report
