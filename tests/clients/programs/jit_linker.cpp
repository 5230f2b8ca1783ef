// SPDX-License-Identifier: Apache-2.0
// jit_linker ARCH [OPTION]...: nvJitLinkCreate for an architecture such as sm_90, after the driver has been
// asked to start; with --no-driver first among the options, without.
#include <cuda.h>
#include <nvJitLink.h>

#include <cstring>
#include <string>
#include <vector>

#include "client.h"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::string arch = std::string("-arch=") + argv[1];
  std::vector<const char*> options = {arch.c_str()};
  int next = 2;
  const bool driver = argc < 3 || std::strcmp(argv[2], "--no-driver") != 0;
  if (!driver) ++next;
  for (int i = next; i < argc; ++i) options.push_back(argv[i]);
  if (driver) step("cuInit", cuInit(0));
  nvJitLinkHandle handle = nullptr;
  const bool made = step("nvJitLinkCreate",
                         nvJitLinkCreate(&handle, static_cast<unsigned>(options.size()), options.data()));
  if (handle != nullptr) nvJitLinkDestroy(&handle);
  return made ? 0 : 1;
}
