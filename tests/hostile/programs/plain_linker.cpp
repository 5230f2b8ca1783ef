// SPDX-License-Identifier: Apache-2.0
// Libraries that come, go, and define what others define.
#include <dirent.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <random>
#include <thread>

#include "plain.h"

namespace hostile {
namespace {

/// Keeps what comes next from the addresses that a library has had.
void occupy(std::uintptr_t base) {
  mmap(reinterpret_cast<void*>(base), 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
       0);
}

std::uintptr_t base_of(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) == 0 ? 0 : reinterpret_cast<std::uintptr_t>(info.dli_fbase);
}

std::vector<std::string> files_of(const std::string& path) {
  std::vector<std::string> files;
  DIR* folder = opendir(path.c_str());
  for (const dirent* entry = readdir(folder); entry != nullptr; entry = readdir(folder))
    if (entry->d_name[0] != '.') files.push_back(path + "/" + entry->d_name);
  closedir(folder);
  std::sort(files.begin(), files.end());
  return files;
}

using Plain = long (*)();
Plain plain(void* library, const char* name) { return reinterpret_cast<Plain>(dlsym(library, name)); }

double seconds_of_processor() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

}  // namespace

/// As programs do that look whether there is a GPU, and later look again. The words are drivers.
int reload() {
  for (int round = 0; round < 2; ++round)
    for (const std::string& path : g_words) {
      Library found(path.c_str());
      const std::uintptr_t base = base_of(found.settings);
      const int init = found.call("cuInit", 0);
      long module = 0;
      const int good = found.call("cuModuleLoadData", word(&module), word(&base));
      found.answers(kRefused);
      const int refused = found.call("cuLaunchKernel", 0);
      const int bad = found.call("cuModuleLoadData", word(&module), word(&base));
      std::printf("%d %d %d %d\n", init, good, refused, bad);
      std::fflush(stdout);
      dlclose(found.handle);
      occupy(base);
    }
  return 0;
}

/// Plug-ins (the words) that are linked to a driver or a runtime, which come and go with them.
int plugin_again() {
  for (int round = 0; round < 3; ++round)
    for (const std::string& path : g_words) {
      void* plugin = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      void* settings = dlsym(plugin, "plain_driver");
      if (settings == nullptr) settings = dlsym(plugin, "plain_runtime");
      if (settings == nullptr) return std::printf("%s\n", dlerror());
      const long good = plain(plugin, "allocates")();
      static_cast<PlainSettings*>(settings)->answer = 2;
      const long bad = plain(plugin, "allocates")();
      const std::uintptr_t base = base_of(settings);
      std::printf("%ld %ld %d\n", good, bad, dlclose(plugin));
      std::fflush(stdout);
      occupy(base);
    }
  return 0;
}

/// Threads open, use and close such plug-ins (the words). Answers how many calls said something wrong.
int plugins_come_and_go() {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 4; ++seed)
    threads.emplace_back([&wrong, seed] {
      std::minstd_rand random(seed);
      for (int round = 0; round < 3000; ++round) {
        void* plugin = dlopen(g_words[random() % g_words.size()].c_str(), RTLD_NOW | RTLD_LOCAL);
        const Plain allocates = plain(plugin, "allocates");
        for (int call = 0; call < 5; ++call) wrong += allocates() == 1 ? 0 : 1;
        dlclose(plugin);
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::printf("%d\n", wrong.load());
  return 0;
}

/// Plug-ins (the words) that bring runtimes of their own, of one version.
int own_runtimes() {
  std::vector<void*> plugins;
  for (const std::string& path : g_words) {
    plugins.push_back(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
    if (plugins.back() == nullptr) return std::printf("%s\n", dlerror());
    static_cast<PlainSettings*>(dlsym(plugins.back(), "plain_runtime"))->answer =
        static_cast<int>(plugins.size() * 10);
    std::printf("%ld\n", plain(plugins.back(), "registers")());
  }
  for (int round = 0; round < 2; ++round)
    for (void* plugin : plugins) std::printf("%ld\n", plain(plugin, "allocates")());
  return 0;
}

/// Two drivers at once (the words): each answers for itself, also after the other one was looked up.
int two_drivers() {
  const Library one(g_words[0].c_str());
  const Library two(g_words[1].c_str());
  const Call first = one.function("cuLaunchKernel");
  one.call("cuInit", 0);
  one.answers(kRefused);
  two.answers(500);
  const Call second = two.function("cuLaunchKernel");
  for (const Call call : {first, second, first})
    std::printf("%ld\n", call(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
  dlclose(one.handle);
  two.answers(0);
  std::printf("%d\n", two.call("cuInit", 0));
  two.answers(500);
  std::printf("%d\n", two.call("cuLaunchKernel", 0));
  return 0;
}

/// A library that came late asks for the driver's function after the driver has gone (WORD 0: a driver, 1:
/// the library).
int after_close() {
  void* asks = dlopen(g_words[1].c_str(), RTLD_NOW);
  void* driver = dlopen(g_words[0].c_str(), RTLD_NOW);
  reinterpret_cast<Call>(dlsym(driver, "cuInit"))(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  dlclose(driver);
  std::printf("%ld %ld\n", plain(asks, "asks_default")(), plain(asks, "asks_next")());
  return 0;
}

/// WORD 0 defines cuInit, in a scope of its own; WORD 1 is linked to the driver.
int local_plugin() {
  void* first = dlopen(g_words[0].c_str(), RTLD_NOW | RTLD_LOCAL);
  void* second = dlopen(g_words[1].c_str(), RTLD_NOW | RTLD_LOCAL);
  if (first == nullptr || second == nullptr) return std::printf("%s\n", dlerror());
  std::printf("%ld\n", plain(second, "uses_driver")());
  return 0;
}

/// What a program without CUDA finds in itself.
int null_handle() {
  void* self = dlopen(nullptr, RTLD_NOW);
  const auto look = [self] {
    for (const char* name :
         {"cuInit", "cuMemAlloc_v2", "cudaMalloc", "__cudaRegisterFatBinary", "nvrtcCompileProgram", "dlsym"})
      std::printf("%s %d %d %d\n", name, dlsym(self, name) != nullptr, dlsym(RTLD_DEFAULT, name) != nullptr,
                  dlvsym(self, name, "libcudart.so.12") != nullptr);
  };
  look();
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  look();
  dlclose(driver);
  dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  look();
  return 0;
}

namespace {
std::atomic<int> g_mine{0};
long mine(long, long, long, long, long, long) {
  ++g_mine;
  return 0;
}
}  // namespace

/// Writes a jump over the first bytes of a driver function, as UCX and others do that must see every
/// allocation. WORD 0 is linked to the driver.
int patched() {
#if defined(__x86_64__)
  void* library = dlopen(g_words[0].c_str(), RTLD_NOW);
  start();
  driver().answers(0);
  auto* const code = reinterpret_cast<unsigned char*>(driver().function("cuMemAlloc_v2"));
  auto* const page =
      reinterpret_cast<unsigned char*>(reinterpret_cast<std::uintptr_t>(code) & ~std::uintptr_t{4095});
  mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
  unsigned char jump[] = {0x49, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0xff, 0xe3};  // movabs r11; jmp *r11
  const auto target = reinterpret_cast<std::uintptr_t>(&mine);
  std::memcpy(jump + 2, &target, sizeof target);
  std::memcpy(code, jump, sizeof jump);
  const long before = driver().settings->entered;
  driver().call("cuMemAlloc_v2", 0, 0);
  std::printf("%d\n", g_mine.load());
  plain(library, "allocates")();
  std::printf("%d %ld\n", g_mine.load(), driver().settings->entered - before);
#endif
  return 0;
}

/// Opens each library of WORD 0; each loads device code and looks a function up, as a launcher does. Says
/// what of the processor's time it took in the file WORD 1.
int libraries() {
  start();
  driver().answers(0);
  const std::vector<std::string> files = files_of(g_words[0]);
  const double before = seconds_of_processor();
  int wrong = 0;
  for (const std::string& file : files) {
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    const auto load = reinterpret_cast<long (*)(Call, Call)>(dlsym(library, "kshim_test_load"));
    const bool good = load != nullptr && load(driver().function("cuModuleLoadData"),
                                              driver().function("cuModuleGetFunction")) == 0;
    wrong += good ? 0 : 1;
  }
  std::ofstream(g_words[1]) << seconds_of_processor() - before << "\n";
  std::printf("%zu %d\n", files.size(), wrong);
  return 0;
}

/// Opens each library of WORD 0; each looks a driver function up in the default scope. The driver is in the
/// scope of the library WORD 2 alone. What it took of the processor's time is in the file WORD 1.
int default_look_ups() {
  if (g_words.size() > 2) {
    void* const user = dlopen(g_words[2].c_str(), RTLD_NOW | RTLD_LOCAL);
    std::printf("%ld\n", plain(user, "uses_driver")());
  }
  const std::vector<std::string> files = files_of(g_words[0]);
  const double before = seconds_of_processor();
  for (const std::string& file : files) plain(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL), "asks_default")();
  std::ofstream(g_words[1]) << seconds_of_processor() - before << "\n";
  return 0;
}

/// A runtime in the global scope, and functions of it that are found there.
int default_runtime() {
  const Library library("libcudart.so.12");
  dlopen("libcudart.so.12", RTLD_NOW | RTLD_GLOBAL);
  driver().call("cuInit", 0);
  library.answers(2);
  for (void* const handle : {RTLD_DEFAULT, dlopen(nullptr, RTLD_NOW)})
    std::printf("%ld\n",
                reinterpret_cast<Call>(dlsym(handle, "cudaMalloc"))(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
  return 0;
}

/// Threads open and close the libraries of WORD 0, and call a function of each, which uses its own variables
/// or functions that are named like the driver's. Answers how many calls said something else than the first
/// of its library.
int come_and_go() {
  constexpr int kThreads = 4;
  constexpr int kRounds = 1000;
  const std::vector<std::string> files = files_of(g_words[0]);
  const auto call = [](const std::string& file) {
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    const auto forwards = reinterpret_cast<long (*)(int)>(dlsym(library, "forwards"));
    const long said = forwards != nullptr ? forwards(0) : plain(library, "fills_data")();
    dlclose(library);
    return said;
  };
  std::vector<long> expected;
  for (const std::string& file : files) expected.push_back(call(file));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      for (unsigned round = 0; round < kRounds; ++round) {
        const std::size_t which = (round * 7U + thread * 3U + round / 11U) % files.size();
        if (call(files[which]) != expected[which]) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::printf("%d\n", wrong.load());
  return 0;
}

namespace {

sem_t g_stopped, g_goes_on;
void stop(int) {
  const int error = errno;
  sem_post(&g_stopped);
  while (sem_wait(&g_goes_on) != 0) continue;
  errno = error;
}

}  // namespace

/// A thread opens and closes the library WORD 0 all the time; a collector stops it by a signal, calls the
/// driver, and lets it go on. Answers whether one of these calls had to wait.
int stopped_in_close() {
  using Clock = std::chrono::steady_clock;
  constexpr auto kLength = std::chrono::seconds(4);
  constexpr auto kLong = std::chrono::seconds(1);
  driver().call("cuInit", 0);
  const Call looks_up = look_up();
  const auto call = [&] { looks_up(0, 0x70000000, word("none"), 0, 0, 0, 0, 0, 0, 0, 0, 0); };
  driver().answers(0);
  sem_init(&g_stopped, 0, 0);
  sem_init(&g_goes_on, 0, 0);
  struct sigaction action {};
  action.sa_handler = stop;
  sigaction(SIGUSR1, &action, nullptr);
  std::atomic<bool> done{false};
  std::thread closes([&] {
    while (!done) {
      void* const library = dlopen(g_words[0].c_str(), RTLD_NOW);
      call();
      dlclose(library);
      call();
    }
  });
  bool waited = false;
  for (const auto start = Clock::now(); Clock::now() - start < kLength;) {
    pthread_kill(closes.native_handle(), SIGUSR1);
    while (sem_wait(&g_stopped) != 0) continue;
    const auto before = Clock::now();
    call();
    waited = waited || Clock::now() - before > kLong;
    sem_post(&g_goes_on);
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  done = true;
  closes.join();
  std::printf("%d\n", waited ? 1 : 0);
  return 0;
}

/// Each library of the folder WORD 0 for itself, one after the other, before the driver; then inside().
int many_files() {
  int wrong = 0;
  for (const std::string& file : files_of(g_words[0])) {
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    const Plain asks = plain(library, "asks_default");
    wrong += asks() == -1 ? 0 : 1;  // there is no driver
    const std::uintptr_t base = base_of(reinterpret_cast<const void*>(asks));
    dlclose(library);
    occupy(base);
  }
  g_words.erase(g_words.begin());
  std::printf("%d\n", wrong);
  return inside();
}

/// Loads each file of WORD 0 by its name, then fails in a library that is opened only now (WORD 1).
int paths() {
  start();
  driver().answers(0);
  long module = 0;
  int wrong = 0;
  for (const std::string& file : files_of(g_words[0]))
    wrong += driver().call("cuModuleLoad", word(&module), word(file.c_str())) == 0 ? 0 : 1;
  g_words.erase(g_words.begin());
  std::printf("%d\n", wrong);
  return inside();
}

/// Another thread opens and closes what has a name of cuDNN's (the files of WORD 0), while the driver is
/// started.
int cudnn() {
  const std::vector<std::string> files = files_of(g_words[0]);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (std::size_t first = 0; first < 3; ++first)
    threads.emplace_back([&, first] {
      constexpr std::size_t kAtATime = 40;
      void* open[kAtATime];
      for (std::size_t at = first; !stop.load(); at += 3 * kAtATime) {
        for (std::size_t i = 0; i < kAtATime; ++i)
          open[i] = dlopen(files[(at + 3 * i) % files.size()].c_str(), RTLD_NOW);
        for (void* library : open) dlclose(library);
      }
    });
  start();
  int wrong = 0;
  char name[32];
  for (int i = 0; i < 1500; ++i) {
    driver().answers(0);
    wrong += driver().call("cuInit", 0) == 0 ? 0 : 1;
    driver().answers(kRefused);
    std::snprintf(name, sizeof name, "k%d", i % 900);
    wrong += fail_as(name) == kRefused ? 0 : 1;
  }
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
  std::printf("wrong: %d\n", wrong);
  return 0;
}

/// Opens WORD 0, which is damaged where nobody has to look; then fails.
int damaged() {
  std::printf("opened: %d\n", dlopen(g_words[0].c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr);
  start();
  long module = 0;
  const int loaded = driver().call("cuModuleLoadData", word(&module), 0);
  std::printf("%d %d\n", loaded, fail_as("damaged"));
  return 0;
}

/// Fails inside WORD 0 (in WORD 2 threads), then another thread opens and closes WORD 1.
int inside() {
  start();
  void* library = dlopen(g_words[0].c_str(), RTLD_NOW);
  const auto call_back = reinterpret_cast<void (*)(void (*)())>(dlsym(library, "calls_back"));
  if (call_back == nullptr) return std::printf("%s\n", dlerror());
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  static constinit thread_local char name[40] = {};
  const auto fail = [] { static_cast<void>(fail_as(name)); };
  for (int i = g_words.size() > 2 ? std::stoi(g_words[2]) : 1; i > 0; --i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 10; ++round) {
        std::snprintf(name, sizeof name, "inside_%d_%d", i, round);
        call_back(fail);
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::thread([] { dlclose(dlopen(g_words[1].c_str(), RTLD_NOW)); }).join();
  std::printf("wrong: %d\n", wrong.load());
  return 0;
}

}  // namespace hostile
