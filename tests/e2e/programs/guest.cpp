// SPDX-License-Identifier: Apache-2.0
// guest LIBRARY SCENARIO: a host program that does what host programs do around a failing CUDA call. LIBRARY
// is the plug-in of sample 06, whose scale_all() fails where it has no image for the device.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using ScaleAll = int (*)(int);
ScaleAll scale_all = nullptr;

struct Unwound {
  ~Unwound() { std::puts("unwound"); }
};

__attribute__((noinline)) void throw_on_failure() {
  const Unwound unwound;
  const int error = scale_all(1000);
  if (error != 0) throw std::runtime_error("CUDA error " + std::to_string(error));
}

int exceptions() {
  try {
    throw_on_failure();
  } catch (const std::runtime_error& error) {
    std::printf("caught %s\n", error.what());
  }
  // As pybind11 and pytorch do: an exception carried from one thread to another.
  std::exception_ptr carried;
  std::thread([&] {
    try {
      throw_on_failure();
    } catch (...) {
      carried = std::current_exception();
    }
  }).join();
  try {
    std::rethrow_exception(carried);
  } catch (const std::exception& error) {
    std::printf("carried %s\n", error.what());
  }
  return 0;
}

int fork_first() {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) _exit(scale_all(1000) == 0 ? 1 : 0);
  int status = 0;
  waitpid(child, &status, 0);
  return scale_all(1000) != 0 && status == 0 ? 0 : 1;
}

int exec_after(const char* self, const char* library) {
  scale_all(1000);
  std::fflush(stdout);
  execl(self, self, library, "once", nullptr);
  return 1;
}

/// Closes what it does not know, as daemons do, and opens a file of its own, which gets the lowest free
/// number.
int close_everything() {
  scale_all(1000);
  for (int fd = 3; fd < 256; ++fd) close(fd);
  const int mine = open("mine.txt", O_WRONLY | O_CREAT | O_TRUNC, 0600);
  scale_all(1000);
  const bool written = write(mine, "mine\n", 5) == 5;
  return written ? 0 : 1;
}

/// Started with stderr closed: the file that it opens becomes number 2.
int stderr_is_a_file() {
  const int mine = open("mine.txt", O_WRONLY | O_CREAT | O_TRUNC, 0600);
  scale_all(1000);
  const bool written = write(mine, "mine\n", 5) == 5;
  return written && mine == STDERR_FILENO ? 0 : 1;
}

int threads() {
  std::vector<std::thread> running;
  for (int i = 0; i < 8; ++i) {
    running.emplace_back([] {
      for (int round = 0; round < 25; ++round) scale_all(1000);
    });
  }
  for (std::thread& thread : running) thread.join();
  return 0;
}

template <class Function>
Function driver_function(void* driver, const char* name) {
  return reinterpret_cast<Function>(dlsym(driver, name));
}

/// The runtime remembers a failed load; a program that uses the driver may try again and again.
int repeat(const char* fatbin) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return 2;
  void* context = nullptr;
  void* module = nullptr;
  driver_function<int (*)(unsigned)>(driver, "cuInit")(0);
  driver_function<int (*)(void**, int)>(driver, "cuDevicePrimaryCtxRetain")(&context, 0);
  driver_function<int (*)(void*)>(driver, "cuCtxSetCurrent")(context);
  const auto load = driver_function<int (*)(void**, const char*)>(driver, "cuModuleLoad");
  for (int i = 0; i < 150; ++i) {
    if (load(&module, fatbin) != 209) return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string_view scenario = argv[2];
  if (scenario == "repeat") return repeat(argv[1]);
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::printf("%s\n", dlerror());
    return 2;
  }
  scale_all = reinterpret_cast<ScaleAll>(dlsym(library, "scale_all"));
  if (scenario == "once") return scale_all(1000) == 0 ? 0 : 1;
  if (scenario == "exceptions") return exceptions();
  if (scenario == "fork") return fork_first();
  if (scenario == "exec") return exec_after(argv[0], argv[1]);
  if (scenario == "close") return close_everything();
  if (scenario == "stderr") return stderr_is_a_file();
  if (scenario == "threads") return threads();
  if (scenario == "linger") {
    scale_all(1000);
    std::fflush(stdout);
    return sleep(2) == 0 ? 0 : 1;  // long enough to be seen
  }
  if (scenario == "_exit") {
    scale_all(1000);
    _exit(3);
  }
  if (scenario == "kill") {
    scale_all(1000);
    raise(SIGKILL);
  }
  return 2;
}
