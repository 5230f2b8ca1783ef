// SPDX-License-Identifier: Apache-2.0
// schema.def as a JSON Schema: a line of a report is one of the records.
#include <map>
#include <string>
#include <string_view>

#include "docs_gen.h"
#include "kshim/report/schema.h"

namespace {

using kshim::report::kFields;
using kshim::report::kRecords;

/// What each `kind` of schema.def is in JSON.
const std::map<std::string_view, std::string_view> kKinds = {
    {"string", R"({"type": "string"})"},
    {"text", R"({"type": "string"})"},
    {"uint", R"({"type": "integer", "minimum": 0})"},
    {"number", R"({"type": "number"})"},
    {"bool", R"({"type": "boolean"})"},
    {"strings", R"({"type": "array", "items": {"type": "string"}})"},
    {"texts", R"({"type": "array", "items": {"type": "string"}})"},
    {"env", R"({"type": "object", "additionalProperties": {"type": "string"}})"},
    {"images", R"({"type": "array", "items": {"$ref": "#/$defs/image"}})"},
    {"layers", R"({"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/layer"}})"},
    {"frames", R"({"type": "array", "items": {"$ref": "#/$defs/frame"}})"},
    {"python", R"({"type": "array", "items": {"$ref": "#/$defs/python_frame"}})"},
    {"processes", R"({"type": "array", "items": {"$ref": "#/$defs/process"}})"},
};

constexpr std::string_view kDefinitions = R"(  "$defs": {
    "image": {"type": "object", "required": ["kind", "arch"],
      "properties": {"kind": {"enum": ["cubin", "ptx", "ltoir", "tileir"]}, "arch": {"type": "string"}, "isa": {"type": ["string", "null"]},
        "count": {"type": "integer", "minimum": 1}, "bytes": {"type": "integer", "minimum": 0}}},
    "layer": {"type": "object", "required": ["layer", "api", "code"],
      "properties": {"layer": {"enum": ["driver", "runtime", "nvrtc", "nvjitlink"]}, "api": {"type": "string"},
        "code": {"type": "integer"}, "name": {"type": ["string", "null"]}}},
    "frame": {"type": "object", "required": ["offset"],
      "properties": {"object": {"type": ["string", "null"]}, "build_id": {"type": ["string", "null"]},
        "offset": {"type": "integer", "minimum": 0}, "symbol": {"type": ["string", "null"]}}},
    "python_frame": {"type": "object", "required": ["file"],
      "properties": {"file": {"type": "string"}, "line": {"type": ["integer", "null"]}, "function": {"type": ["string", "null"]}}},
    "process": {"type": "object", "required": ["pid", "start"],
      "properties": {"pid": {"type": "integer", "minimum": 0}, "start": {"type": "integer", "minimum": 0}, "exe": {"type": ["string", "null"]}}}
  }
)";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string property(const kshim::report::FieldRow& row) {
  std::string type(kKinds.at(row.kind));
  if (!row.required) type = R"({"anyOf": [)" + type + R"(, {"type": "null"}]})";
  type.pop_back();
  return "        \"" + std::string(row.field) + "\": " + type + R"(, "description": ")" +
         escaped(row.meaning) + "\"}";
}

}  // namespace

std::string report_json_schema() {
  std::string out = "{\n  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n  \"title\": \"";
  out += kshim::report::kReportSchema;
  out += ": one line of a report\",\n  \"type\": \"object\",\n  \"oneOf\": [\n";
  bool first_record = true;
  for (const auto& record : kRecords) {
    if (!first_record) out += ",\n";
    first_record = false;
    out += "    {\"description\": \"" + escaped(record.meaning) +
           "\",\n      \"required\": [\"type\", \"seq\", \"t\"";
    for (const auto& field : kFields)
      if (field.record == record.type && field.required) out += ", \"" + std::string(field.field) + "\"";
    out +=
        "],\n      \"properties\": {\n        \"type\": {\"const\": \"" + std::string(record.type) + "\"},\n";
    out +=
        "        \"seq\": {\"type\": \"integer\", \"minimum\": 0},\n        \"t\": {\"type\": \"integer\", "
        "\"minimum\": 0}";
    for (const auto& field : kFields)
      if (field.record == record.type) out += ",\n" + property(field);
    out += "\n      }}";
  }
  out += "\n  ],\n";
  out += kDefinitions;
  return out + "}\n";
}
