// SPDX-License-Identifier: Apache-2.0
// Hosts that hold, lose or use up what the shim once relied on.   faults SCENARIO [FILE]...
// Each scenario ends by itself where the shim is harmless; SIGALRM ends one that hangs.
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "driver.h"

namespace {

constexpr unsigned kHangs = 20;  // seconds

sem_t g_inside;

int stay(dl_phdr_info*, std::size_t, void*) {
  sem_post(&g_inside);
  for (;;) pause();
}

void* iterate_for_ever(void*) {
  dl_iterate_phdr(stay, nullptr);
  return nullptr;
}

/// Another thread is inside a callback of dl_iterate_phdr and never leaves it.
void hold_linker_lock() {
  pthread_t thread;
  sem_init(&g_inside, 0, 0);
  pthread_create(&thread, nullptr, iterate_for_ever, nullptr);
  while (sem_wait(&g_inside) != 0) {
  }
}

/// A child of fork ends with exit() while a thread that it does not have holds the linker's lock.
int fork_exit() {
  hold_linker_lock();
  const pid_t child = fork();
  if (child == 0) std::exit(7);
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  std::fflush(stdout);
  _exit(0);
}

int fail_once() {
  void* function = nullptr;
  return hostile::look_up(nullptr, "kernel", &function);
}

/// _exit while another thread holds the linker's lock, in a process that has a report.
int immediate() {
  std::printf("%d\n", hostile::attach());
  std::fflush(stdout);
  hold_linker_lock();
  _exit(5);
}

struct FrameHeader {
  const char* path;
  unsigned char* header;
};

int find_frame_header(dl_phdr_info* info, std::size_t, void* context) {
  auto& wanted = *static_cast<FrameHeader*>(context);
  if (info->dlpi_name == nullptr || std::strstr(info->dlpi_name, wanted.path) == nullptr) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i)
    if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
      wanted.header = reinterpret_cast<unsigned char*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
  return 1;
}

void* open_library(void* path) { return dlopen(static_cast<const char*>(path), RTLD_NOW); }

/// A failing call comes out of a library whose .eh_frame_hdr has an encoding that no unwinder knows; then
/// another thread opens a library.
int unwind(const char* odd, const char* other) {
  constexpr unsigned char kNoSuchEncoding = 0x55;
  std::printf("%d\n", hostile::attach());
  void* const library = dlopen(odd, RTLD_NOW);
  FrameHeader header{std::strrchr(odd, '/') + 1, nullptr};
  dl_iterate_phdr(find_frame_header, &header);
  if (library == nullptr || header.header == nullptr) return 1;
  const auto page = reinterpret_cast<std::uintptr_t>(header.header) & ~std::uintptr_t{4095};
  mprotect(reinterpret_cast<void*>(page), 8192, PROT_READ | PROT_WRITE);
  header.header[1] = kNoSuchEncoding;
  const auto through = reinterpret_cast<int (*)(int (*)())>(dlsym(library, "call_through"));
  std::printf("%d\n", through(fail_once));
  pthread_t thread;
  void* opened = nullptr;
  pthread_create(&thread, nullptr, open_library, const_cast<char*>(other));
  pthread_join(thread, &opened);
  std::printf("%s\n", opened != nullptr ? "opened" : dlerror());
  return 0;
}

/// Opens a driver, uses it, closes it, and puts something else where it was.
int reload(const char* path) {
  for (int round = 0; round < 3; ++round) {
    void* const driver = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (driver == nullptr) {
      std::printf("%s\n", dlerror());
      return 1;
    }
    const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
    const auto load = reinterpret_cast<int (*)(void**, const void*)>(dlsym(driver, "cuModuleLoadData"));
    const auto where = reinterpret_cast<void* (*)()>(dlsym(driver, "reload_driver_here"));
    void* module = nullptr;
    const int begun = init(0);
    std::printf("%d %d\n", begun, load(&module, "not an image"));
    const auto page = reinterpret_cast<std::uintptr_t>(where()) & ~std::uintptr_t{4095};
    dlclose(driver);
    // The next one cannot be mapped at the same place.
    void* const taken =
        mmap(reinterpret_cast<void*>(page), 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    std::printf("%s %s\n", taken == MAP_FAILED ? "free" : "taken",
                dlsym(RTLD_DEFAULT, "cuInit") == nullptr ? "none" : "some");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  alarm(kHangs);
  const char* const name = argv[1];
  if (std::strcmp(name, "fork_exit") == 0) return fork_exit();
  if (std::strcmp(name, "immediate") == 0) return immediate();
  if (std::strcmp(name, "unwind") == 0 && argc == 4) return unwind(argv[2], argv[3]);
  if (std::strcmp(name, "reload") == 0 && argc == 3) return reload(argv[2]);
  return 2;
}
