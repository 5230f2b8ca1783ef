// SPDX-License-Identifier: Apache-2.0
// What was found as JSON, schema kshim-doctor/1 (docs/schema/doctor.json). What is not known is null; lists
// are never null.
#include "analyzer/render/json_finding.h"
#include "analyzer/verbs/doctor.h"

namespace kshim::doctor {
namespace {

using analysis::Json;
using analysis::json_list;
using analysis::text_or_null;

Json version_or_null(image::Version version) {
  return version.known() ? Json(image::to_name(version).view()) : Json(nullptr);
}

Json to_json(const Library& library) {
  return {{"name", library.name},
          {"path", library.file.path},
          {"file", library.file.real},
          {"how", library.file.how},
          {"version", text_or_null(library.version)}};
}

Json to_json(const Gpu& gpu) {
  return {{"name", text_or_null(gpu.name)},
          {"compute_capability", gpu.cc ? Json(image::to_name(*gpu.cc).view()) : Json(nullptr)},
          {"compute_capability_by", !gpu.cc ? Json(nullptr) : Json(gpu.cc_by_name ? "name" : "driver")},
          {"uuid", text_or_null(gpu.uuid)},
          {"pci", text_or_null(gpu.pci)},
          {"mig", gpu.mig},
          {"simulated", gpu.simulated}};
}

Json to_json(const Python& python) {
  Json out = {{"interpreter", python.interpreter},
              {"version", text_or_null(python.version)},
              {"manager", text_or_null(python.manager)}};
  out["wheels"] = json_list(python.wheels, [](const PythonWheel& wheel) {
    return Json{{"name", wheel.name}, {"version", text_or_null(wheel.version)}};
  });
  out["library_folders"] = python.library_folders;
  return out;
}

Json to_json(const PackageCoverage& package) {
  Json out = {{"package", text_or_null(package.package)}, {"files", package.files}, {"archs", package.archs}};
  out["gpus"] = json_list(package.gpus, [](const GpuCoverage& gpu) {
    return Json{{"compute_capability", image::to_name(gpu.cc).view()},
                {"files", gpu.files},
                {"run", gpu.run},
                {"jit", gpu.jit}};
  });
  return out;
}

Json to_json(const Program& program) {
  Json out = {{"path", program.path},
              {"found", program.found},
              {"library", program.library},
              {"scripts", program.chain},
              {"blind", text_or_null(program.blind)}};
  out["libraries"] = json_list(program.libraries, [](const Library& library) { return to_json(library); });
  out["missing"] = program.missing;
  out["dlmopen"] = program.dlmopen;
  return out;
}

}  // namespace

std::string render_json(const Facts& facts) {
  Json out = {{"schema", "kshim-doctor/1"}};
  out["gpus"] = json_list(facts.gpus, [](const Gpu& gpu) { return to_json(gpu); });
  out["driver"] = {{"kernel_module", text_or_null(facts.driver.kernel_module)},
                   {"cuda_version", version_or_null(facts.driver.cuda)},
                   {"ptx_isa", version_or_null(facts.driver.isa)},
                   {"source", text_or_null(facts.driver.asked)}};
  out["toolkits"] = json_list(facts.toolkits, [](const Toolkit& toolkit) {
    return Json{{"path", toolkit.folder},
                {"version", version_or_null(toolkit.version)},
                {"known_by", toolkit.known_by},
                {"compiler", toolkit.compiler}};
  });
  out["compilers"] = json_list(facts.compilers, [](const Compiler& compiler) {
    return Json{{"program", compiler.program},
                {"path", compiler.path},
                {"version", text_or_null(compiler.version)},
                {"known_by", compiler.known_by}};
  });
  out["pythons"] = json_list(facts.pythons, [](const Python& python) { return to_json(python); });
  out["system"] = {{"os", text_or_null(facts.system.os)},
                   {"kernel", text_or_null(facts.system.kernel)},
                   {"machine", text_or_null(facts.system.machine)},
                   {"glibc", text_or_null(facts.system.glibc)}};
  out["coverage"] =
      json_list(facts.coverage, [](const PackageCoverage& package) { return to_json(package); });
  out["libraries"] = json_list(facts.libraries, [](const Library& library) { return to_json(library); });
  out["preloads"] = json_list(facts.preloads, [](const Preload& preload) {
    return Json{{"path", preload.path}, {"there", preload.there}, {"note", text_or_null(preload.note)}};
  });
  out["place"] = {{"container", facts.place.container},
                  {"wsl", facts.place.wsl},
                  {"device_nodes", facts.place.device_nodes},
                  {"pci", facts.place.pci}};
  out["program"] = facts.program ? to_json(*facts.program) : Json(nullptr);
  out["findings"] = json_list(facts.checks, [](const Check& check) {
    return Json{{"id", check.id},
                {"severity", analysis::to_name(check.severity)},
                {"text", check.text},
                {"advice", text_or_null(check.advice)}};
  });
  analysis::add_knowledge(out);
  return analysis::dumped(out);
}

}  // namespace kshim::doctor
