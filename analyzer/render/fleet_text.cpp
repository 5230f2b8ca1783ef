// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/fleet_text.h"

#include <fmt/core.h>

#include <algorithm>

#include "analyzer/render/finding_page.h"

namespace kshim::analysis {
namespace {

std::string added_text(const FleetList& list) {
  FleetList added;
  for (const FleetArch& row : list.archs) {
    if (row.added) added.archs.push_back({row.arch, true, {}});
  }
  return list_text(added);
}

std::string cost_text(const FleetPlan& plan, const FleetList& list) {
  const std::string added = added_text(list);
  if (added.empty()) return "adds nothing";
  const std::string size = size_text(plan, list);
  return fmt::format("adds {}{}{}", added, size.empty() ? "" : ": ", size);
}

// Whether it says more than the fix of the one finding about this file.
bool is_news(const FleetPlan& plan) {
  const auto added = std::count_if(plan.smallest.archs.begin(), plan.smallest.archs.end(),
                                   [](const FleetArch& row) { return row.added; });
  const bool hosts = std::any_of(plan.breaks.begin(), plan.breaks.end(),
                                 [&](const FleetBreak& row) { return row.host != plan.breaks.front().host; });
  return plan.gpus.size() > 1 && (added > 1 || hosts || !plan.compiled.empty() || !plan.unserved.empty() ||
                                  plan.native.archs.size() != plan.smallest.archs.size());
}

std::vector<const FleetPlan*> fleet_news(const std::vector<FleetPlan>& plans) {
  std::vector<const FleetPlan*> out;
  for (const FleetPlan& plan : plans) {
    if (is_news(plan)) out.push_back(&plan);
  }
  return out;
}

std::vector<Fact> plan_facts(const FleetPlan& plan) {
  std::vector<Fact> rows = {{"file", {code(plan.object)}}, {"lacks", {{names_of(plan.lacking)}}}};
  const auto add = [&](std::string label, std::string text) {
    rows.push_back({std::move(label), {{std::move(text)}}});
  };
  add("breaks on", breaks_text(plan));
  add("smallest", fmt::format("{}, and PTX of {}", list_text(plan.smallest),
                              image::to_name(image::ImageKind::ptx, plan.ptx).view()));
  add("", cost_text(plan, plan.smallest));
  if (plan.native.archs.size() != plan.smallest.archs.size()) {
    add("native", list_text(plan.native));
    add("", cost_text(plan, plan.native));
  }
  if (!plan.basis.empty()) add("", fmt::format("sizes are estimates: {}", plan.basis));
  add("toolkit", toolkits_text(plan));
  return rows;
}

Json names(const std::vector<image::ComputeCapability>& gpus) {
  return json_list(gpus, [](image::ComputeCapability cc) { return Json(image::to_name(cc).view()); });
}

Json to_json(const FleetList& list) {
  Json out;
  out["archs"] = json_list(list.archs, [](const FleetArch& row) {
    return Json{{"arch", image::to_name(image::ImageKind::cubin, row.arch).view()},
                {"added", row.added},
                {"serves", names(row.serves)}};
  });
  out["added_bytes"] = value_or_null(list.bytes);
  return out;
}

}  // namespace

void write_fleet(const std::vector<FleetPlan>& all, Document& document) {
  constexpr std::size_t kPlans = 3;
  constexpr std::size_t kSharedPlans = 20;
  const std::vector<const FleetPlan*> plans = fleet_news(all);
  if (plans.empty()) return;
  document.gap();
  document.say(Tone::strong, "What to build for", names_of(plans.front()->gpus), Tone::plain, 2);
  const std::size_t shown = std::min(plans.size(), document.brief()      ? kPlans
                                                   : document.terminal() ? plans.size()
                                                                         : kSharedPlans);
  for (const FleetPlan* plan : std::span(plans).first(shown)) {
    document.gap();
    document.facts(plan_facts(*plan));
  }
  write_left_out(plans.size() - shown, "more file", document);
}

Json to_json(const FleetPlan& plan) {
  Json out = {{"object", plan.object},
              {"build_id", text_or_null(plan.build_id)},
              {"gpus", names(plan.gpus)},
              {"lacking", names(plan.lacking)},
              {"smallest", to_json(plan.smallest)},
              {"native", to_json(plan.native)}};
  const bool any = plan.ptx.cc.major != 0;
  out["ptx"] = any ? Json(image::to_name(image::ImageKind::ptx, plan.ptx).view()) : Json(nullptr);
  out["cmake"] = text_or_null(cmake_text(plan));
  out["toolkits"] =
      json_list(plan.toolkits, [](image::Version version) { return Json(image::to_name(version).view()); });
  out["compiled"] = names(plan.compiled);
  out["unserved"] = names(plan.unserved);
  out["toolkit_advice"] = toolkits_text(plan);
  out["bytes_each"] = plan.bytes_each == 0 ? Json(nullptr) : Json(plan.bytes_each);
  out["basis"] = text_or_null(plan.basis);
  out["breaks"] = json_list(plan.breaks, [](const FleetBreak& row) {
    return Json{{"host", text_or_null(row.host)},
                {"ordinal", row.ordinal},
                {"gpu", row.gpu},
                {"compute_capability", image::to_name(row.cc).view()}};
  });
  out["breaks_total"] = plan.breaks_total;
  return out;
}

}  // namespace kshim::analysis
