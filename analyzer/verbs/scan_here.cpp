// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/scan_here.h"

#include "analyzer/core/text.h"
#include "analyzer/input/machine/facts.h"
#include "kshim/files/open_file.h"

namespace kshim::scan {

namespace fs = std::filesystem;

MachineGpus gpus_here() {
  const doctor::Machine machine = doctor::this_machine();
  const doctor::Loader loader(machine);
  doctor::Facts facts;
  facts.place = doctor::look_at_place(machine);
  doctor::find_gpus(machine, loader, facts);
  MachineGpus out{.archs = {}, .driver = facts.driver.cuda, .names = {}};
  std::vector<std::string> names;
  for (const doctor::Gpu& gpu : facts.gpus) {
    if (!gpu.cc) continue;
    const image::Arch arch{*gpu.cc, image::Suffix::none};
    if (std::ranges::find(out.archs, arch) != out.archs.end()) continue;
    out.archs.push_back(arch);
    names.push_back(fmt::format("{} ({})", gpu.name, image::to_name(*gpu.cc).view()));
  }
  out.names = enumerate(names);
  return out;
}

ActivePython active_python() {
  const doctor::Machine machine = doctor::this_machine();
  std::string first = doctor::in_path(machine, "python3");
  if (first.empty()) first = doctor::in_path(machine, "python");
  for (const std::string& prefix :
       {std::string(machine.env("VIRTUAL_ENV")), std::string(machine.env("CONDA_PREFIX")),
        fs::path(first).parent_path().parent_path().string()}) {
    if (prefix.empty()) continue;
    for (const doctor::Python& python : doctor::find_pythons(machine, prefix))
      if (!python.folders.empty())
        return {python.interpreter, {python.folders.begin(), python.folders.end()}};
  }
  return {};
}

bool holds_reports(const fs::path& path) {
  const auto is_report = [](const fs::path& file) {
    const auto text = files::read_up_to(file, 4096);
    return text && text->find("\"kshim-report/") != std::string::npos;
  };
  std::error_code error;
  if (fs::is_regular_file(path, error)) return is_report(path);
  for (fs::recursive_directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().extension() == ".jsonl" && is_report(entry->path())) return true;
  return false;
}

}  // namespace kshim::scan
