// SPDX-License-Identifier: Apache-2.0
// A program without any CUDA in it that loads a plug-in, as Python loads an extension.
#include <dlfcn.h>

#include <cstdio>
#include <string>

int main(int argc, char** argv) {
  const std::string self = argc > 0 ? argv[0] : "";
  const std::string path = self.substr(0, self.rfind('/') + 1) + "libscale.so";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::printf("host: %s\n", dlerror());
    return 2;
  }
  const auto scale_all = reinterpret_cast<int (*)(int)>(dlsym(library, "scale_all"));
  if (scale_all == nullptr) {
    std::printf("host: %s\n", dlerror());
    return 2;
  }
  const int error = scale_all(100000);
  std::printf(error == 0 ? "host: done\n" : "host: the plug-in failed with %d\n", error);
  return error == 0 ? 0 : 1;
}
