// SPDX-License-Identifier: Apache-2.0
// Asks the driver for the table CUDART_INTERFACE as a CUDA runtime does, and says what became of it. Each
// argument is a step:
//   newer          asks for cuLibraryLoadData first, as runtimes from 12 on do
//   deny, blind    from here mprotect with PROT_WRITE, or openat with O_CLOEXEC, is refused by seccomp
//   ask            asks for the table; prints the rights of its pages and whose code the slots lead to
//   call           calls slots 1, 6 and 8, well and not, and compares what arrives and what comes back
//   race           four threads call slot 6 while the table is asked for
//   fork           goes on in a child
//   close          unloads the driver; the next step loads it again
//   table NAME     the shape of the driver's table from here on; "other": this program's own
//   run FILE       calls old_run() of that library
//   driver FILE    the driver from here on
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace {

using Word = std::uintptr_t;
using Slot = Word (*)(Word, Word, Word, Word, Word, Word);

const char* g_file = "libcuda.so.1";
void* g_driver;
const Word* g_table;

void* driver_symbol(const char* name) {
  if (g_driver == nullptr) g_driver = dlopen(g_file, RTLD_NOW);
  void* symbol = g_driver == nullptr ? nullptr : dlsym(g_driver, name);
  if (symbol == nullptr) {
    std::printf("no %s\n", name);
    std::exit(2);
  }
  return symbol;
}

void ask() {
  static const unsigned char kId[16] = {0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a,
                                        0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9};
  const void* table = nullptr;
  const auto get = reinterpret_cast<int (*)(const void**, const void*)>(driver_symbol("cuGetExportTable"));
  errno = 77;
  const int result = get(&table, kId);
  if (result != 0 || errno != 77) std::printf("result %d, errno %d\n", result, errno);
  g_table = static_cast<const Word*>(table);
}

std::string rights_at(Word address) {
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  std::string found = "?";
  for (char line[512]; maps != nullptr && std::fgets(line, sizeof line, maps) != nullptr;) {
    unsigned long low = 0, high = 0;
    char rights[8] = "";
    if (std::sscanf(line, "%lx-%lx %7s", &low, &high, rights) == 3 && low <= address && address < high)
      found = rights;
  }
  if (maps != nullptr) std::fclose(maps);
  return found;
}

void say_table() {
  const auto at = reinterpret_cast<Word>(g_table);
  std::printf("%s %s", rights_at(at + 8).c_str(), rights_at(at + 71).c_str());
  for (const int slot : {1, 6, 8}) {
    Dl_info info{};
    const bool known = dladdr(reinterpret_cast<void*>(g_table[slot]), &info) != 0;
    std::printf(" %s", known ? std::strrchr(info.dli_fname, '/') + 1 : "?");
  }
  std::printf("\n");
}

const char kImage[] = ".version 7.8\n.target sm_90\n.address_size 64\n";

void call() {
  const auto seen = reinterpret_cast<const Word* (*)()>(driver_symbol("table_driver_seen"))();
  for (const int slot : {1, 6, 8}) {
    for (const Word code : {Word{0}, Word{209}}) {
      Word module = 0;
      const auto out = reinterpret_cast<Word>(&module), image = reinterpret_cast<Word>(&kImage);
      const Word words[6] = {
          slot == 8 ? image : out, slot == 8 ? out : image, code == 0, ~Word{4}, ~Word{5}, ~Word{6}};
      errno = 78;
      const auto function = reinterpret_cast<Slot>(g_table[slot]);
      const Word answer = function(words[0], words[1], words[2], words[3], words[4], words[5]);
      const bool same = std::memcmp(seen, words, sizeof words) == 0;
      if (!same || answer != (Word{0x5a} << 40) + code || errno != 78 || module != (code == 0 ? 0xabc0 : 0))
        std::printf("slot %d: words %d, answer %#lx, errno %d\n", slot, same,
                    static_cast<unsigned long>(answer), errno);
    }
  }
}

std::atomic<bool> g_end{false};
std::atomic<unsigned> g_calls{0}, g_wrong{0};
// A table of the program's own.
Word own_slot() { return 801; }
struct {
  Word size;
  Word (*slots[12])();
} g_own = {13 * sizeof(Word),
           {own_slot, own_slot, own_slot, own_slot, own_slot, own_slot, own_slot, own_slot}};

void* call_again(void*) {
  const volatile Word* table = g_table;
  Word module = 0;
  while (!g_end.load()) {
    const Word answer = reinterpret_cast<Slot>(table[6])(reinterpret_cast<Word>(&module), 8, 1, 0, 0, 0);
    if (answer != Word{0x5a} << 40) ++g_wrong;
    ++g_calls;
  }
  return nullptr;
}
void race() {
  g_table = reinterpret_cast<const Word*>(
      reinterpret_cast<const void* (*)()>(driver_symbol("table_driver_good"))());
  pthread_t threads[4];
  for (pthread_t& thread : threads) pthread_create(&thread, nullptr, call_again, nullptr);
  while (g_calls.load() < 1000) usleep(100);
  ask();
  const unsigned before = g_calls.load();
  while (g_calls.load() < before + 1000) usleep(100);
  g_end = true;
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  std::printf("%u wrong\n", g_wrong.load());
}

/// The system call `number` fails with EPERM where the third argument has one of the bits.
void refuse(unsigned number, unsigned bits) {
#if defined(__aarch64__)
  constexpr unsigned kArchitecture = AUDIT_ARCH_AARCH64;
#else
  constexpr unsigned kArchitecture = AUDIT_ARCH_X86_64;
#endif
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 0, 5),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args) + 16),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof filter / sizeof filter[0], filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    std::printf("no seccomp\n");
    std::exit(77);
  }
}

void run(const char* file) {
  void* library = dlopen(file, RTLD_NOW);
  if (library == nullptr) {
    std::printf("%s\n", dlerror());
    std::exit(2);
  }
  reinterpret_cast<int (*)()>(dlsym(library, "old_run"))();
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  for (int i = 1; i < argc; ++i) {
    const std::string_view step = argv[i];
    if (step == "newer") {
      driver_symbol("cuLibraryLoadData");
    } else if (step == "deny") {
      driver_symbol("cuGetExportTable");
      refuse(SYS_mprotect, PROT_WRITE);
    } else if (step == "blind") {
      driver_symbol("cuGetExportTable");
      refuse(SYS_openat, O_CLOEXEC);  // the shim's, not this program's
    } else if (step == "ask") {
      ask();
      if (g_table == nullptr || reinterpret_cast<Word>(g_table) < 4096)
        std::printf("table %p\n", static_cast<const void*>(g_table));
      else
        say_table();
    } else if (step == "call") {
      call();
    } else if (step == "race") {
      race();
    } else if (step == "fork") {
      const pid_t child = fork();
      int status = 0;
      if (child != 0) {
        waitpid(child, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
      }
    } else if (step == "close") {
      dlclose(g_driver);
      if (dlopen(g_file, RTLD_NOW | RTLD_NOLOAD) != nullptr) std::printf("still loaded\n");
      g_driver = nullptr;
    } else if (step == "table" && i + 1 < argc) {
      setenv("TABLE", argv[++i], 1);
      reinterpret_cast<void (*)(const void*)>(driver_symbol("table_driver_use"))(&g_own);
    } else if (step == "run" && i + 1 < argc) {
      run(argv[++i]);
    } else if (step == "driver" && i + 1 < argc) {
      g_file = argv[++i];
      g_driver = nullptr;
    } else {
      return 2;
    }
  }
  return 0;
}
