// SPDX-License-Identifier: Apache-2.0
// A scan or an analysis that was kept as JSON. It may come from anywhere: what is missing or of a wrong type
// is empty.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "analyzer/compare/side.h"

namespace kshim::diff {
namespace {

using Json = nlohmann::json;

const Json& member(const Json& json, const char* key) {
  static const Json kNone;
  if (!json.is_object()) return kNone;
  const auto found = json.find(key);
  return found == json.end() ? kNone : *found;
}
std::string text_of(const Json& json, const char* key) {
  const Json& value = member(json, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}
std::uint64_t number_of(const Json& json, const char* key) {
  const Json& value = member(json, key);
  return value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
}
const Json& list_of(const Json& json, const char* key) {
  static const Json kEmpty = Json::array();
  const Json& value = member(json, key);
  return value.is_array() ? value : kEmpty;
}

std::string sentence_of(const Json& finding) {
  const std::string object = text_of(finding, "object");
  const std::string headline = text_of(finding, "headline");
  const std::string need = text_of(finding, "need");
  std::string text = object.empty() ? headline : object.substr(object.rfind('/') + 1) + ": " + headline;
  if (!need.empty()) text += fmt::format(" ({})", need);
  return text;
}

Finding finding_of(const Json& json) {
  Finding out{.cause = text_of(json, "cause"),
              .object = text_of(json, "object"),
              .need = text_of(json, "need"),
              .text = sentence_of(json)};
  const std::string severity = text_of(json, "severity");
  out.severity = severity == "error"     ? analysis::Severity::error
                 : severity == "warning" ? analysis::Severity::warning
                                         : analysis::Severity::info;
  const Json& code = member(json, "code");
  if (code.is_number_integer()) out.code = code.get<std::int64_t>();
  return out;
}

void add_images(const Json& json, Object& object) {
  for (const Json& entry : list_of(json, "images")) {
    const auto arch = image::parse_arch(text_of(entry, "arch"));
    if (!arch) continue;
    analysis::ImageCount row;
    row.candidate.kind = image::parse_kind(text_of(entry, "kind")).value_or(image::ImageKind::cubin);
    row.candidate.arch = *arch;
    if (const auto isa = image::parse_version(text_of(entry, "isa"))) row.candidate.isa = *isa;
    row.count = number_of(entry, "count");
    row.bytes = number_of(entry, "bytes");
    object.images.push_back(row);
  }
}

Object object_of(const Json& json) {
  Object out;
  out.place = text_of(json, "path");
  out.member = text_of(json, "member");
  out.name = out.member.empty() ? out.place : out.place + "!" + out.member;
  out.package = package_name(text_of(json, "package"));
  out.build_id = text_of(json, "build_id");
  out.bytes = number_of(json, "bytes");
  add_images(json, out);
  if (member(json, "kernels").is_array()) {
    out.kernels.emplace();
    for (const Json& kernel : list_of(json, "kernels")) {
      std::vector<std::string>& archs = (*out.kernels)[text_of(kernel, "demangled")];
      for (const Json& image : list_of(kernel, "images"))
        out.code_bytes[text_of(kernel, "demangled")] += number_of(image, "code_bytes");
      for (const Json& arch : list_of(kernel, "archs")) {
        if (arch.is_string()) archs.push_back(arch.get<std::string>());
      }
    }
  }
  for (const Json& target : list_of(json, "targets")) {
    const auto arch = image::parse_arch(text_of(target, "target"));
    if (!arch) continue;
    scan::TargetVerdict verdict{.target = *arch};
    verdict.sass = number_of(target, "sass");
    verdict.jit = number_of(target, "jit");
    verdict.lacking = number_of(target, "lacking");
    out.targets[*arch] = scan::outcome_of(verdict);
  }
  return out;
}

// What all paths have in common, up to a slash, is the folder that was scanned.
void cut_common_folder(std::vector<Object>& objects) {
  if (objects.empty()) return;
  std::string common = objects.front().place.substr(0, objects.front().place.rfind('/') + 1);
  for (const Object& object : objects) {
    while (!object.place.starts_with(common)) {
      common.pop_back();
      common.resize(common.rfind('/') + 1);
    }
  }
  for (Object& object : objects) object.place.erase(0, common.size());
}

}  // namespace

bool read_json(const std::string& text, Side& side) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) {
    side.notes = {fmt::format("{}: is no JSON that can be read whole", side.path)};
    return false;
  }
  const std::string schema = text_of(json, "schema");
  if (schema == "kshim-analysis/1") {
    side.kind = SideKind::reports;
    side.has_objects = false;
    side.verdict = text_of(json, "verdict");
    for (const Json& device : list_of(json, "devices")) {
      const std::string cc = text_of(device, "compute_capability");
      side.devices.push_back(fmt::format("{} ({})", text_of(device, "name"), cc.empty() ? "?" : cc));
    }
  } else if (schema == "kshim-scan/1") {
    for (const Json& object : list_of(json, "objects")) side.objects.push_back(object_of(object));
    cut_common_folder(side.objects);
  } else {
    side.notes = {fmt::format("{}: its schema is `{}`; kshim-scan/1 and kshim-analysis/1 can be compared",
                              side.path, schema)};
    return false;
  }
  for (const Json& finding : list_of(json, "findings")) side.findings.push_back(finding_of(finding));
  for (const Json& note : list_of(json, "notes")) {
    if (note.is_string()) side.notes.push_back(note.get<std::string>());
  }
  return true;
}

}  // namespace kshim::diff
