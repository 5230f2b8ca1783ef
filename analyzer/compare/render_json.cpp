// SPDX-License-Identifier: Apache-2.0
// The diff as JSON, schema kshim-diff/1 (docs/schema/diff.json). What is not known is null; lists are never
// null.
#include <algorithm>

#include "analyzer/compare/render.h"
#include "analyzer/render/json_finding.h"

namespace kshim::diff {
namespace {

using analysis::Json;
using analysis::json_list;
using analysis::text_or_null;

Json version_or_null(image::Version version) {
  return version.known() ? Json(image::to_name(version).view()) : Json(nullptr);
}

Json name_or_null(const Object* object) { return object == nullptr ? Json(nullptr) : Json(object->name); }

Json to_json(const Side& side) {
  return {{"path", side.path},
          {"kind", side.kind == SideKind::reports ? "reports" : "scan"},
          {"objects", side.has_objects ? Json(side.objects.size()) : Json(nullptr)},
          {"findings", side.findings.size()},
          {"devices", side.devices},
          {"verdict", text_or_null(side.verdict)}};
}

Json to_json(const Finding& finding) {
  return {{"cause", finding.cause},
          {"severity", analysis::to_name(finding.severity)},
          {"object", text_or_null(finding.object)},
          {"need", text_or_null(finding.need)},
          {"code", finding.code ? Json(*finding.code) : Json(nullptr)},
          {"text", finding.text}};
}

Json to_json(const Diff& diff, const Change& change) {
  Json object(nullptr);
  if (change.pair) {
    const Pair& pair = diff.pairs[*change.pair];
    object = {{"a", name_or_null(pair.a)}, {"b", name_or_null(pair.b)}};
  }
  return {{"effect", to_name(change.effect)},
          {"what", change.what},
          {"object", std::move(object)},
          {"arch", text_or_null(change.arch)},
          {"before", text_or_null(change.before)},
          {"after", text_or_null(change.after)},
          {"text", change.text},
          {"kernels", change.kernels}};
}

Json images_of(const Object& object) {
  return json_list(object.images, [](const analysis::ImageCount& row) {
    return Json{{"kind", image::to_name(row.candidate.kind)},
                {"arch", image::to_name(row.candidate.kind, row.candidate.arch).view()},
                {"isa", version_or_null(row.candidate.isa)},
                {"count", row.count},
                {"bytes", row.bytes}};
  });
}

Json side_of(const Object* object) {
  if (object == nullptr) return nullptr;
  return {{"name", object->name}, {"bytes", object->bytes}, {"images", images_of(*object)}};
}

}  // namespace

std::string render_json(const Diff& diff) {
  Json out = {{"schema", "kshim-diff/1"}, {"verdict", verdict_of(diff)}};
  out["a"] = to_json(diff.a);
  out["b"] = to_json(diff.b);
  out["changes"] = json_list(diff.changes, [&](const Change& change) { return to_json(diff, change); });
  out["objects"] = json_list(diff.pairs, [](const Pair& pair) {
    return Json{{"match", *pair.match == '\0' ? Json(nullptr) : Json(pair.match)},
                {"a", side_of(pair.a)},
                {"b", side_of(pair.b)}};
  });
  const auto list = [](const std::vector<Finding>& findings) {
    return json_list(findings, [](const Finding& finding) { return to_json(finding); });
  };
  Json& findings = out["findings"];
  findings["mended"] = list(diff.mended);
  findings["broken"] = list(diff.broken);
  findings["changed"] = json_list(diff.other, [](const FindingPair& pair) {
    return Json{{"a", to_json(pair.a)}, {"b", to_json(pair.b)}};
  });
  findings["stayed"] = list(diff.stayed);
  out["targets"] = json_list(diff.targets, [](const image::Arch& target) {
    return Json(image::to_name(image::ImageKind::cubin, target).view());
  });
  out["driver"] = version_or_null(diff.driver);
  out["notes"] = diff.notes;
  return analysis::dumped(out);
}

}  // namespace kshim::diff
