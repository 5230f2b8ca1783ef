// SPDX-License-Identifier: Apache-2.0
// A library that is opened RTLD_LOCAL and looks functions up: RTLD_DEFAULT and RTLD_NEXT mean something else
// in it than in the program.
#include <dlfcn.h>

extern "C" void* look_up_there(void* handle, const char* name, const char* version);

extern "C" void* look_up_there(void* handle, const char* name, const char* version) {
  void* volatile found = version == nullptr ? dlsym(handle, name) : dlvsym(handle, name, version);
  return found;
}
