// SPDX-License-Identifier: Apache-2.0
// What the scenarios of host.cpp share, and those that are in files of their own.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "driver.h"

namespace hostile {

extern std::vector<char> g_good;
extern std::vector<char> g_bad;
extern std::string g_argument;

/// A load that works, a look-up that fails, a load that fails.
void use(const char* who);

int storm();
int handler_calls();
int fiber_calls();
int thread_on_own_memory();
int jumps();
int descriptors();
int limited(int which);
int recursion();
int replaced_by_fifo();
int until_full();
int changed_root();
int other_user();
int sandboxed();
int landlocked();
int own_stderr();
int same_number();

/// From now on the kernel answers this call with that error; false where there is no seccomp.
bool refuse(unsigned number, unsigned error);

}  // namespace hostile
