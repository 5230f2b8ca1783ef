// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/json_finding.h"

#include "analyzer/data/knowledge_file.h"
#include "analyzer/render/finding_page.h"
#include "analyzer/render/render.h"
#include "analyzer/render/share.h"
#include "analyzer/verbs/report_facts.h"

namespace kshim::render {
KSHIM_JSON(core::ImageVerdict, kind, arch, isa, count, fits, reason)
KSHIM_JSON(core::SeenIn, host, rank, pid, run, count)
KSHIM_JSON(core::DeadEnd, action, why)
KSHIM_JSON(diagnose::BlindProcess, pid, exe, reason)
KSHIM_JSON(verbs::RejectedReport, report, reason, owner)

namespace {

template <class Arguments>
Json arguments_json(const Arguments& arguments) {
  Json out = Json::object();
  for (const auto& [name, value] : arguments) out[std::string(name)] = value;
  return out;
}

Json number_or_null(std::uint64_t line) { return line == 0 ? Json(nullptr) : Json(line); }

// A sentence that ends with the report line that proves it.
std::string sentence(const core::Evidence& evidence) {
  if (evidence.at.empty()) return evidence.text;
  return evidence.text + " (" + evidence.at.text() + ")";
}

}  // namespace

template <>
inline Json to_json(const core::Place& from) {
  Json out = with_room(6, {{"file", json_of(from.file)},
                           {"line", number_or_null(from.line)},
                           {"function", json_of(from.function)},
                           {"language", from.python ? "python" : "native"}});
  if (!from.python) {
    KSHIM_JSON_FIELDS(object, offset)
  }
  return out;
}

template <>
inline Json to_json(const core::Fix& from) {
  Json out = with_room(9, {{"kind", to_name(from.kind)}, {"who", to_name(from.actor)}});
  KSHIM_JSON_FIELDS(title, commands, why, caveat, id)
  if (!from.assumed.empty()) out["assumed"] = json_of(from.assumed);
  out["arguments"] = arguments_json(from.arguments);
  return out;
}

template <>
inline Json to_json(const core::Device& from) {
  static constexpr const char* kKinds[] = {"present", "assumed", "target", "named"};
  Json out = with_room(5, {{"kind", kKinds[static_cast<std::size_t>(from.kind)]}});
  KSHIM_JSON_FIELDS(ordinal, name)
  out["compute_capability"] = json_of(from.cc);
  out["simulated"] = from.simulated;
  return out;
}

template <>
inline Json to_json(const core::Evidence& from) {
  return {{"id", to_name(from.id)},
          {"arguments", arguments_json(from.arguments)},
          {"file", json_of(from.at.file)},
          {"line", number_or_null(from.at.line)}};
}

template <>
Json to_json(const core::PackageName& from) {
  if (from.empty()) return nullptr;
  Json out = with_room(16);
  KSHIM_JSON_FIELDS(name, version, installer)
  out["project"] = json_of(data::known_project(from.name));
  return out;
}

template <>
Json to_json(const core::Finding& from) {
  Json out = with_room(40, {{"cause", row_of(from.cause).name}});
  KSHIM_JSON_FIELDS(severity, confidence, code, code_name)
  out["headline"] = headline_of(from);
  out["object"] = json_of(from.object);
  out["package"] = json_of(from.package.text());
  KSHIM_JSON_FIELDS(kernels, kernels_complete)
  out["kernels_total"] = number_or_null(from.kernels_total);
  KSHIM_JSON_FIELDS(have, need)
  if (!from.other_objects.empty()) out["other_objects"] = from.other_objects;
  out["images"] = json_of(from.images);
  out["devices"] = json_list(from.devices, [](const core::Device& device) { return text_of(device); });
  KSHIM_JSON_FIELDS(count, failed_call, failed_kernel)
  if (const core::Place& kernel = from.kernel_source; !kernel.file.empty() && kernel.line != 0)
    out["kernel_source"] = {{"file", kernel.file}, {"line", kernel.line}};
  out["evidence"] = json_list(from.evidence, sentence);
  out["where"] = from.where.empty() ? Json(nullptr) : to_json(from.where.front());
  out["stack"] = json_of(from.where);
  KSHIM_JSON_FIELDS(fixes, dead_ends, remarks, build_id, seen_in, processes, processes_total)
  out["package_info"] = to_json(from.package);
  out["device"] = from.devices.empty() ? Json(nullptr) : to_json(from.devices.front());
  out["gpus"] = json_of(from.devices);
  out["hypothetical"] = diagnose::is_hypothetical(from);
  out["evidence_items"] = json_of(from.evidence);
  return out;
}

std::string dumped(const Json& json, Format format) {
  constexpr int kOneLine = -1;
  std::string text =
      json.dump(format == Format::jsonl ? kOneLine : 2, ' ', true, Json::error_handler_t::replace) + '\n';
  // `##[` in a log is a command to GitHub's runner, wherever in a line it stands.
  for (std::size_t at = text.find("##["); at != std::string::npos; at = text.find("##[", at))
    text.replace(at, 1, "\\u0023");
  return text;
}

void add_knowledge(Json& out) {
  out["knowledge"] = data::knowledge_date();
  out["knowledge_files"] = data::knowledge_files();
}

template <>
inline Json to_json(const verbs::DeviceSummary& from) {
  Json out = with_room(16);
  KSHIM_JSON_FIELDS(host, ordinal, name)
  out["compute_capability"] = json_of(from.cc);
  KSHIM_JSON_FIELDS(uuid, pci, driver_cuda, kernel_module, simulated, findings)
  return out;
}
inline Json process_json(const verbs::ProcessSummary& from, bool full) {
  Json out = with_room(16);
  KSHIM_JSON_FIELDS(report, host, pid, rank, exe)
  out["argv"] = full ? from.argv : program_and_script(from.argv);
  KSHIM_JSON_FIELDS(failures, modules, complete, lost, run, sample)
  out["exit_status"] = json_of(from.ending.status);
  out["term_signal"] = json_of(from.ending.signal);
  return out;
}
KSHIM_JSON(verbs::RunSummary, run, processes, hosts, ranks, failed, incomplete)

KSHIM_JSON(input::ImageEntry, kind, arch, isa, count, bytes)
KSHIM_JSON(verbs::ReportedLoads, file, content_hash, device, result, jit, selected, count, microseconds)
KSHIM_JSON(verbs::ReportedFailure, id, finding, stage, code, name, kernel, file, compute_capability,
           python_file, python_line, count)
KSHIM_JSON(verbs::ReportedKernel, kernel, file, content_hash, launches)
template <>
inline Json to_json(const input::ReportNote& from) {
  return {{"line", number_or_null(from.line)}, {"reason", from.text}};
}
template <>
inline Json to_json(const verbs::ReportedFile& from) {
  Json out = with_room(16);
  KSHIM_JSON_FIELDS(path, build_id, images)
  out["package_info"] = to_json(from.package);
  return out;
}
template <>
inline Json to_json(const verbs::ReportFacts& from) {
  Json out = with_room(24);
  KSHIM_JSON_FIELDS(time, start, ppid, run, uid, hidden, job, account, queue, shim, driver, kernel_module,
                    simulated, modules, compiler_status, owner, foreign, changed, arrived, files, loads,
                    failures, kernels, damage)
  return out;
}

std::string render_json(const verbs::Analysis& from, Format format, const RenderOptions& options) {
  Json out = with_room(20, {{"schema", "kshim-analysis/1"}, {"verdict", to_name(from.verdict)}});
  out["devices"] = json_of(from.devices);
  out["processes"] = json_list(from.processes, [&](const verbs::ProcessSummary& process) {
    return process_json(process, options.full);
  });
  out["findings"] = json_list(from.findings, [&](const core::Finding& finding) {
    Json row = to_json(finding);
    if (options.verbose)
      row["failures"] = json_list(finding.failures, [](const core::ReportLine& at) { return at.text(); });
    return row;
  });
  KSHIM_JSON_FIELDS(notes, blind, runs, fleet, mapped, exit_status, term_signal)
  out["last_words"] = from.last_words.line.empty() ? Json() : Json(from.last_words.line);
  out["not_cuda"] = from.other ? Json{{"what", from.other->what},
                                      {"quote", from.other->quote},
                                      {"fix", to_json(from.other->remedy)}}
                               : Json();
  out["needs_kernel_module"] = from.needs_module.empty() ? Json() : Json(from.needs_module);
  if (from.rejected) out["rejected"] = to_json(*from.rejected);
  if (from.facts) out["facts"] = to_json(*from.facts);
  add_knowledge(out);
  return dumped(out, format);
}

}  // namespace kshim::render
