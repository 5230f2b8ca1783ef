// SPDX-License-Identifier: Apache-2.0
// What is wrong with a machine, or will surprise: each check looks at the facts and adds what it has to say.
#pragma once
#include "analyzer/input/machine/facts.h"

namespace kshim::diagnose {

void check_driver(const Loader& loader, MachineFacts& facts);
void check_place(const Machine& machine, MachineFacts& facts);
void check_visible_devices(const Machine& machine, MachineFacts& facts);
void check_toolkits(const Machine& machine, MachineFacts& facts);
void check_libraries(const Machine& machine, const Loader& loader, MachineFacts& facts);
void check_program(MachineFacts& facts);
/// Of a running process, whose libraries are those that it has mapped.
void check_process(const Machine& machine, const Loader& loader, MachineFacts& facts);

}  // namespace kshim::diagnose
