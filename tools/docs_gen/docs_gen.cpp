// SPDX-License-Identifier: Apache-2.0
// Prints one section of the documents, made from the tables of the source.   kshim_docs SECTION
#include "docs_gen.h"

#include <cstdio>
#include <map>
#include <string>
#include <string_view>

#include "kshim/image/select.h"
#include "kshim/report/schema.h"

namespace {

/// A cell of a Markdown table: bars would end it.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

std::string report_records() {
  std::string out;
  for (const auto& record : kshim::report::kRecords) {
    out += "### `" + std::string(record.type) + "`\n" + std::string(record.meaning) +
           ".\n\n| field | type | meaning |\n| --- | --- | --- |\n";
    for (const auto& field : kshim::report::kFields)
      if (field.record == record.type)
        out += "| `" + std::string(field.field) + "` | " + std::string(field.kind) +
               (field.required ? "" : " or null") + " | " + cell(field.meaning) + " |\n";
    out += "\n";
  }
  out.pop_back();
  return out;
}

std::string causes() {
  std::string out = "| cause | severity | when |\n| --- | --- | --- |\n";
#define KSHIM_CAUSE(id, name, severity, traits, when, headline, title) \
  out += std::string("| `") + name + "` | " #severity " | " + cell(when) + " |\n";
#include "analyzer/core/causes.def"
#undef KSHIM_CAUSE
  return out;
}

std::string compatibility_rules() {
  std::string out = "| rule | what it says | evidence | source |\n| --- | --- | --- | --- |\n";
#define KSHIM_RULE(id, name, text, evidence, source)                                           \
  out += std::string("| ") + id + " | " + cell(text) + " | " + std::string(evidence) + " | " + \
         cell(source) + " |\n";
#include "kshim/image/compat_rules.def"
#undef KSHIM_RULE
  return out;
}

std::string shim_options() {
  std::string out = "| variable | default | meaning |\n| --- | --- | --- |\n";
#define KSHIM_OPTION(id, name, fallback, meaning) \
  out += std::string("| `") + name + "` | " + cell(fallback) + " | " + cell(meaning) + " |\n";
#include "shim/guest/options.def"
#undef KSHIM_OPTION
  return out;
}

std::string recorded_environment() {
  std::string out;
#define KSHIM_ENVIRONMENT(name) out += std::string("`") + name + "` ";
#include "shim/report/environment.def"
#undef KSHIM_ENVIRONMENT
  out += "\n";
  return out;
}

const std::map<std::string_view, std::string (*)()> kSections = {
    {"report-records", report_records},
    {"report-schema", report_json_schema},
    {"causes", causes},
    {"compatibility-rules", compatibility_rules},
    {"shim-options", shim_options},
    {"recorded-environment", recorded_environment},
};

}  // namespace

int main(int argc, char** argv) {
  const auto found = argc == 2 ? kSections.find(argv[1]) : kSections.end();
  if (found == kSections.end()) {
    std::fprintf(stderr, "usage: kshim_docs SECTION\nsections:\n");
    for (const auto& [name, make] : kSections) std::fprintf(stderr, "  %s\n", std::string(name).c_str());
    return 2;
  }
  const std::string text = found->second();
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : 1;
}
