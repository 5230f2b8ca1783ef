// SPDX-License-Identifier: Apache-2.0
// host HOW PLUGIN [THEN [LIBRARY...]]: loads each LIBRARY plainly and runs it where it is a plug-in, then
// PLUGIN plainly, with RTLD_DEEPBIND
// ("deepbind") or into a namespace of its own ("dlmopen"), and runs it. THEN: `exit` returns from main,
// `_exit` ends without a destructor after a while, `close` unloads the plug-in first.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  for (int i = 4; i < argc; ++i) {
    void* library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return std::fprintf(stderr, "%s\n", dlerror()), 3;
    if (void* run = dlsym(library, "plugin_run"); run != nullptr) reinterpret_cast<int (*)()>(run)();
  }
  const std::string_view how = argv[1];
  const std::string_view then = argc > 3 ? argv[3] : "";
  void* plugin = nullptr;
  if (how == "plain") plugin = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
  if (how == "deepbind") plugin = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (how == "dlmopen") plugin = dlmopen(LM_ID_NEWLM, argv[2], RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) return std::fprintf(stderr, "%s\n", dlerror()), 3;
  const auto run = reinterpret_cast<int (*)()>(dlsym(plugin, "plugin_run"));
  if (run == nullptr) return 4;
  const int result = run();
  if (then == "close") dlclose(plugin);
  if (then == "_exit") {
    usleep(600 * 1000);  // so that `kshim run` looks at least once
    _exit(result == 0 ? 0 : 1);
  }
  return result == 0 ? 0 : 1;
}
