// SPDX-License-Identifier: Apache-2.0
// What is wrong with a machine, or will surprise: each check looks at the facts and adds what it has to say.
#pragma once
#include "analyzer/input/machine/facts.h"

namespace kshim::diagnose {

void check_driver(const input::Loader& loader, input::MachineFacts& facts);
void check_place(const input::Machine& machine, input::MachineFacts& facts);
void check_visible_devices(const input::Machine& machine, input::MachineFacts& facts);
void check_toolkits(const input::Machine& machine, input::MachineFacts& facts);
void check_libraries(const input::Machine& machine, const input::Loader& loader, input::MachineFacts& facts);
void check_program(input::MachineFacts& facts);
/// Of a running process, whose libraries are those that it has mapped.
void check_process(const input::Machine& machine, const input::Loader& loader, input::MachineFacts& facts);

}  // namespace kshim::diagnose
