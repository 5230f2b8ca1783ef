// SPDX-License-Identifier: Apache-2.0
// What the scenarios of plain_host.cpp share: the plain driver and runtime (plain/library.cpp), which refuse
// or accept whatever they are told to.
#pragma once
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../plain/calls.h"

namespace hostile {

constexpr int kRefused = 209;
using Call = PlainCall;

struct Library {
  void* handle = nullptr;
  PlainSettings* settings = nullptr;

  explicit Library(const char* path) : handle(dlopen(path, RTLD_NOW)) {
    const char* const name =
        std::string(path).find("libcudart") == std::string::npos ? "plain_driver" : "plain_runtime";
    settings = handle == nullptr ? nullptr : static_cast<PlainSettings*>(dlsym(handle, name));
    if (settings != nullptr) return;
    std::printf("%s: not plain\n", path);
    std::exit(91);
  }
  Call function(const char* name) const { return reinterpret_cast<Call>(dlsym(handle, name)); }
  template <class... Words>
  int call(const char* name, Words... words) const {
    const Call function_of_name = function(name);
    const long list[12] = {static_cast<long>(words)...};
    return static_cast<int>(function_of_name(list[0], list[1], list[2], list[3], list[4], list[5], list[6],
                                             list[7], list[8], list[9], list[10], list[11]));
  }
  void answers(int code) const { settings->answer = code; }
};

inline Library& driver() {
  static Library library("libcuda.so.1");
  return library;
}
inline Library& runtime() {
  static Library library("libcudart.so.12");
  return library;
}
template <class T>
long word(T* pointer) {
  return reinterpret_cast<long>(pointer);
}

inline Call look_up() {
  static std::atomic<Call> g_look_up{nullptr};  // a handler may come here while it is looked up
  if (g_look_up == nullptr) g_look_up = driver().function("cuModuleGetFunction");
  return g_look_up;
}
/// A function that was not found is a failure of a kind of its own, by its name.
inline int fail_as(const char* name) {
  long function = 0;
  return static_cast<int>(look_up()(word(&function), 0x70000000, word(name), 0, 0, 0, 0, 0, 0, 0, 0, 0));
}
/// The driver started, and from now on refuses.
inline void start() {
  driver().call("cuInit", 0);
  driver().answers(kRefused);
}
/// A launch that the runtime passes on to the driver, and both refuse.
inline int fail_in_runtime() {
  static const Call launch = runtime().function("cudaLaunchKernel");
  return static_cast<int>(launch(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
}
inline void runtime_asks_driver(const char* name) {
  runtime().answers(kRefused);
  runtime().settings->calls = driver().function(name);
}

extern std::vector<std::string> g_words;  // after the scenario's name

int reload();
int plugin_again();
int plugins_come_and_go();
int default_runtime();
int own_runtimes();
int after_close();
int default_look_ups();
int come_and_go();
int stopped_in_close();
int two_drivers();
int local_plugin();
int null_handle();
int patched();
int libraries();
int paths();
int many_files();
int cudnn();
int damaged();
int inside();
int switches();
int coroutine();
int cancel();
int crowd();
int stopped();
int jumps_out_of_runtime();
int registers();
int registers_many();
int at_fork();
int many_threads();
int far_apart();
int forked_in_log();
int one_buffer();
int fresh_buffers();
int handles();
int many_failures();
int environment();
int pending();
int interrupted();
int stops_threads();
int ends();
int worker();
[[noreturn]] int main_ends();
int garbage();
int truncated();
int mappings();
int few_mappings();
int no_descriptors();
int tight();
int names();
int generated();
int edge();
int big_file();
int memory();
int barrier();
int while_asking();

}  // namespace hostile
