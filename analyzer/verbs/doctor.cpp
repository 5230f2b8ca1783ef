// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/doctor.h"

#include <algorithm>

#include "analyzer/diagnose/machine_checks.h"
#include "analyzer/input/machine/gather.h"
#include "analyzer/verbs/doctor_coverage.h"

namespace kshim::doctor {

Facts examine(const Machine& machine, const std::string& program) {
  Facts facts;
  const Loader loader(machine);
  facts.system = look_at_system(machine, loader);
  facts.place = look_at_place(machine);
  find_gpus(machine, loader, facts);
  facts.toolkits = find_toolkits(machine);
  const std::string environment = program.empty() ? std::string() : environment_of(machine, program);
  facts.pythons = find_pythons(machine, environment);
  find_coverage(machine, facts);
  facts.libraries = find_libraries(machine, loader);
  facts.compilers = find_compilers(machine, facts.pythons);
  facts.preloads = find_preloads(machine);
  if (!program.empty())
    facts.program = look_at_program(
        machine, loader,
        environment == program && !environment.empty() ? join_path(environment, "bin/python") : program);
  check_driver(loader, facts);
  check_place(machine, facts);
  check_toolkits(machine, facts);
  check_libraries(machine, loader, facts);
  check_program(facts);
  std::stable_sort(facts.checks.begin(), facts.checks.end(),
                   [](const Check& a, const Check& b) { return a.severity > b.severity; });
  return facts;
}

}  // namespace kshim::doctor
