// SPDX-License-Identifier: Apache-2.0
#include "process/loaded_objects.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <semaphore>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "kshim/base/gnu_hash.h"

namespace kshim::shim {
namespace {

/// Copies of one small library under many names: the dynamic linker takes each for another one.
class Libraries : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("kshim_objects_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// One of two libraries that differ in their build id and in the value that probe() returns.
  std::string make(const std::string& name, int which = 1) const {
    const std::filesystem::path path = folder_ / (name + ".so");
    std::filesystem::copy_file(which == 1 ? KSHIM_TEST_LIBRARY_1 : KSHIM_TEST_LIBRARY_2, path,
                               std::filesystem::copy_options::overwrite_existing);
    return path;
  }
  static void* open(const std::string& path) {
    void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(handle, nullptr) << dlerror();
    return handle;
  }
  static void* probe(void* handle) { return dlsym(handle, "probe"); }

  std::filesystem::path folder_;
};

/// Run a second time as with a C library before glibc 2.35 (CMakeLists.txt).
class CLibrary : public ::testing::Environment {
  void SetUp() override {
    if (std::getenv("KSHIM_TEST_OLD_C_LIBRARY") != nullptr) ignore_linkers_look_up();
  }
};
const ::testing::Environment* const g_c_library = ::testing::AddGlobalTestEnvironment(new CLibrary);

struct Seen {
  std::string name;
  std::uintptr_t base;
  bool operator<(const Seen& other) const { return base < other.base; }
};

TEST(LoadedObjects, AreWhatTheDynamicLinkerIterates) {
  std::vector<Seen> theirs;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* context) {
        const std::string name(info->dlpi_name);
        auto& out = *static_cast<std::vector<Seen>*>(context);
        if (name.rfind("linux-", 0) != 0) out.push_back({name, info->dlpi_addr});
        return 0;
      },
      &theirs);
  std::vector<LoadedObject> ours;
  for_each_loaded_object(
      [](void* context, const LoadedObject& object) {
        static_cast<std::vector<LoadedObject>*>(context)->push_back(object);
        return true;
      },
      &ours);
  ASSERT_EQ(ours.size(), theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(ours[i].elf.base(), theirs[i].base);
    if (!theirs[i].name.empty()) {
      EXPECT_EQ(ours[i].path, theirs[i].name);
    }
    EXPECT_TRUE(ours[i].at_start);
    EXPECT_NE(ours[i].identity, 0U);
    EXPECT_EQ(file_of_identity(ours[i].identity).path, ours[i].path);
    if (i > 0) {
      EXPECT_GT(ours[i].mapping_id, ours[i - 1].mapping_id);
    }
  }
  EXPECT_EQ(ours[0].path, std::filesystem::canonical("/proc/self/exe").string());
}

TEST(LoadedObjects, EachAddressLiesWhereDladdrSays) {
  const void* const addresses[] = {reinterpret_cast<const void*>(&getpid),
                                   reinterpret_cast<const void*>(&gnu_hash),
                                   dlsym(RTLD_DEFAULT, "__cxa_throw"), dlsym(RTLD_DEFAULT, "stdout")};
  for (const void* address : addresses) {
    Dl_info info;
    ASSERT_NE(dladdr(address, &info), 0);
    const LoadedObject object = find_loaded_object(address);
    ASSERT_TRUE(object);
    EXPECT_EQ(object.elf.base(), reinterpret_cast<std::uintptr_t>(info.dli_fbase));
    EXPECT_TRUE(object.elf.contains(reinterpret_cast<std::uintptr_t>(address)));
  }
  int on_the_stack = 0;
  EXPECT_FALSE(find_loaded_object(&on_the_stack));
  const std::vector<int> on_the_heap(100);
  EXPECT_FALSE(find_loaded_object(on_the_heap.data()));
  EXPECT_FALSE(find_loaded_object(std::uintptr_t{0}));
  EXPECT_FALSE(find_loaded_object(std::uintptr_t{16}));
  EXPECT_FALSE(find_loaded_object(~std::uintptr_t{0}));
}

TEST_F(Libraries, OneThatIsOpenedIsFoundAndOneThatIsClosedIsNot) {
  void* const handle = open(make("first"));
  const void* const address = probe(handle);
  const LoadedObject object = find_loaded_object(address);
  ASSERT_TRUE(object);
  EXPECT_EQ(object.path, (folder_ / "first.so").string());
  EXPECT_FALSE(object.at_start);
  dlclose(handle);
  EXPECT_FALSE(find_loaded_object(address));
  // What is read of it now is nothing, and no fault.
  EXPECT_EQ(object.elf.find_symbol("probe", gnu_hash("probe")), nullptr);
  EXPECT_FALSE(object.elf.imports("probe"));
}

TEST_F(Libraries, OneInUseIsFoundTheSameWay) {
  void* handle = open(make("in_use", 1));
  EXPECT_EQ(find_object_in_use(probe(handle)).path, (folder_ / "in_use.so").string());
  const LoadedObject first = find_object_in_use(probe(handle));
  dlclose(handle);
  handle = open(make("in_use", 2));
  const LoadedObject second = find_object_in_use(probe(handle));
  EXPECT_NE(first.mapping_id, second.mapping_id);
  EXPECT_NE(text_of(first.build_id.view()), text_of(second.build_id.view()));
  EXPECT_EQ(find_object_in_use(probe(handle)).mapping_id, second.mapping_id);
  dlclose(handle);
  const int on_the_stack = 0;
  EXPECT_FALSE(find_object_in_use(&on_the_stack));
  EXPECT_FALSE(find_object_in_use(handle));
}

// Copies of one library: the linker gives the second the first one's place, node and memory of the name.
TEST_F(Libraries, ACopyInUseHasItsOwnName) {
  const std::string paths[] = {make("copy_a"), make("copy_b")};
  for (int i = 0; i < 20; ++i) {
    void* const handle = open(paths[i % 2]);
    EXPECT_EQ(find_object_in_use(probe(handle)).path, paths[i % 2]);
    EXPECT_EQ(find_loaded_object(probe(handle)).path, paths[i % 2]);
    dlclose(handle);
  }
}

TEST_F(Libraries, AnotherOneAtTheSameAddressIsAnotherOne) {
  // Same name, same size, same place; another file.
  unsigned same_place = 0;
  for (int i = 0; i < 50; ++i) {
    void* handle = open(make("same", 1));
    const void* const first_address = probe(handle);
    const LoadedObject first = find_loaded_object(first_address);
    ASSERT_TRUE(first);
    dlclose(handle);
    handle = open(make("same", 2));
    const void* const second_address = probe(handle);
    const LoadedObject second = find_loaded_object(second_address);
    ASSERT_TRUE(second);
    if (first_address == second_address) {
      ++same_place;
      EXPECT_NE(first.mapping_id, second.mapping_id);
      EXPECT_NE(first.identity, second.identity);
    }
    EXPECT_NE(text_of(first.build_id.view()), text_of(second.build_id.view()));
    dlclose(handle);
  }
  EXPECT_GT(same_place, 0U);
}

TEST_F(Libraries, TheSameFileHasTheSameIdentity) {
  const std::string path = make("again");
  void* handle = open(path);
  const std::uint32_t identity = find_loaded_object(probe(handle)).identity;
  dlclose(handle);
  handle = open(path);
  EXPECT_EQ(find_loaded_object(probe(handle)).identity, identity);
  dlclose(handle);
}

TEST_F(Libraries, ThreeThousandComeAndGoInAnyOrder) {
#ifdef __SANITIZE_THREAD__  // whose dlopen reads the list of all mappings
  constexpr std::size_t kCount = 300;
#else
  constexpr std::size_t kCount = 3000;
#endif
  std::vector<void*> handles;
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < kCount; ++i) {
    paths.push_back(make("many_" + std::to_string(i)));
    handles.push_back(open(paths.back()));
    ASSERT_EQ(find_loaded_object(probe(handles.back())).path, paths.back());
  }
  // Every third one goes, from the middle of the list too.
  for (std::size_t i = 0; i < kCount; i += 3) {
    const void* const address = probe(handles[i]);
    dlclose(handles[i]);
    ASSERT_FALSE(find_loaded_object(address)) << i;
    handles[i] = nullptr;
  }
  for (std::size_t i = 0; i < kCount; ++i)
    if (handles[i] != nullptr) {
      ASSERT_EQ(find_loaded_object(probe(handles[i])).path, paths[i]);
    }
  // Others come in their place.
  for (std::size_t i = 0; i < kCount; i += 3) {
    handles[i] = open(paths[i]);
    ASSERT_EQ(find_loaded_object(probe(handles[i])).path, paths[i]);
  }
  std::set<std::string> visited;
  for_each_loaded_object(
      [](void* context, const LoadedObject& object) {
        static_cast<std::set<std::string>*>(context)->insert(std::string(object.path));
        return true;
      },
      &visited);
  for (const std::string& path : paths) EXPECT_TRUE(visited.count(path) == 1) << path;
  std::reverse(handles.begin(), handles.end());
  for (void* handle : handles) dlclose(handle);
}

TEST_F(Libraries, AListKeepsNoMemory) {
  constexpr std::size_t kCount = 1100;
  std::vector<void*> handles;
  for (std::size_t i = 0; i < kCount; ++i) handles.push_back(open(make("many_" + std::to_string(i))));
  const auto mapped = [] {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages;
  };
  const auto list = [] {
    std::size_t count = 0;
    for_each_loaded_object(
        [](void* context, const LoadedObject&) {
          ++*static_cast<std::size_t*>(context);
          return true;
        },
        &count);
    return count;
  };
  for (int i = 0; i < 3; ++i) EXPECT_GT(list(), kCount);  // the index may grow
  const std::size_t before = mapped();
  for (int i = 0; i < 20; ++i) list();
  EXPECT_LT(mapped(), before + 20);  // a page for each list
  for (void* handle : handles) dlclose(handle);
}

TEST_F(Libraries, OnlyTheNewOnesAreVisitedAfterANumber) {
  const auto nothing = [](void*, const LoadedObject&) { return true; };
  const std::uint64_t before = for_each_loaded_object(nothing, nullptr);
  void* const handle = open(make("new"));
  std::vector<std::string> visited;
  const auto visit = [](void* context, const LoadedObject& object) {
    static_cast<std::vector<std::string>*>(context)->emplace_back(object.path);
    return true;
  };
  const std::uint64_t after = for_each_loaded_object(visit, &visited, {.after = before});
  EXPECT_EQ(visited, std::vector<std::string>{(folder_ / "new.so").string()});
  visited.clear();
  EXPECT_EQ(for_each_loaded_object(visit, &visited, {.after = after}), after);
  EXPECT_TRUE(visited.empty());
  dlclose(handle);
}

// Threads open and close libraries while others look up: an answer is the library that is there, or none.
TEST_F(Libraries, LookUpsWhileOthersComeAndGo) {
  constexpr std::size_t kThreads = 4;
  constexpr int kTurns = 200;
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < kThreads; ++i) paths.push_back(make("stress_" + std::to_string(i)));
  std::atomic<bool> end{false};
  std::atomic<unsigned> wrong{0};
  std::atomic<unsigned> right{0};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      for (int turn = 0; turn < kTurns; ++turn) {
        void* const handle = open(paths[i]);
        const LoadedObject object = find_loaded_object(probe(handle));
        const std::string in_use(find_object_in_use(probe(handle)).path);
        if (!in_use.empty() && in_use != paths[i]) ++wrong;
        if (!std::string(object.path).empty()) {
          ++right;
          if (object.path != paths[i]) ++wrong;
          if (object.elf.find_function("probe", gnu_hash("probe")) != probe(handle)) ++wrong;
        }
        dlclose(handle);
      }
    });
  std::thread reader([&] {
    while (!end.load()) {
      for_each_loaded_object(
          [](void* context, const LoadedObject& object) {
            if (object.elf.imports("no_such_symbol") || object.elf.defines_version("no_such_version"))
              ++*static_cast<std::atomic<unsigned>*>(context);
            return true;
          },
          &wrong);
    }
  });
  for (std::thread& thread : threads) thread.join();
  end = true;
  reader.join();
  EXPECT_EQ(wrong.load(), 0U);
  EXPECT_GT(right.load(), kThreads * kTurns / 2);
}

// A thread is in a callback of dl_iterate_phdr, which holds the dynamic linker's lock, and does not come
// back.
TEST_F(Libraries, NoLockOfTheDynamicLinkerIsTaken) {
  void* const handle = open(make("locked"));
  const void* const address = probe(handle);
  struct Holder {
    std::binary_semaphore inside{0};
    std::binary_semaphore leave{0};
  } holder;
  std::thread thread([&] {
    dl_iterate_phdr(
        [](dl_phdr_info*, std::size_t, void* context) {
          auto& semaphores = *static_cast<Holder*>(context);
          semaphores.inside.release();
          semaphores.leave.acquire();
          return 1;
        },
        &holder);
  });
  holder.inside.acquire();
  // Each of these would wait forever.
  EXPECT_TRUE(find_loaded_object(address));
  EXPECT_TRUE(find_loaded_object(reinterpret_cast<const void*>(&getpid)));
  EXPECT_NE(find_elf_in_use(reinterpret_cast<std::uintptr_t>(address)).unwind_header(), 0U);
  unsigned count = 0;
  for_each_loaded_object(
      [](void* context, const LoadedObject&) {
        ++*static_cast<unsigned*>(context);
        return true;
      },
      &count);
  EXPECT_GT(count, 3U);
  // Nor in a child of fork, which has a copy of the lock that nobody releases.
  const pid_t child = fork();
  if (child == 0) _exit(find_loaded_object(address) ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  holder.leave.release();
  thread.join();
  dlclose(handle);
}

TEST(LoadedObjects, ALooseFileHasAnIdentityToo) {
  const std::uint32_t first = identity_of_file("/opt/a/x.cubin");
  EXPECT_NE(first, 0U);
  EXPECT_EQ(identity_of_file("/opt/a/x.cubin"), first);
  EXPECT_NE(identity_of_file("/opt/b/x.cubin"), first);
  EXPECT_EQ(identity_of_file(""), 0U);
  EXPECT_TRUE(file_of_identity(0).path.empty());
  EXPECT_TRUE(file_of_identity(kMaxIdentities).path.empty());
}

// Each byte of the tables of a library is damaged in turn: no look-up faults or runs forever.
TEST_F(Libraries, DamagedTablesCostAnAnswerOnly) {
  std::ifstream file(KSHIM_TEST_LIBRARY_1, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  ElfW(Ehdr) header;
  std::memcpy(&header, bytes.data(), sizeof header);
  std::vector<ElfW(Phdr)> segments(header.e_phnum);
  std::memcpy(segments.data(), bytes.data() + header.e_phoff, segments.size() * sizeof segments[0]);
  std::size_t size = 0;
  for (const ElfW(Phdr) & segment : segments)
    if (segment.p_type == PT_LOAD) size = std::max<std::size_t>(size, segment.p_vaddr + segment.p_memsz);
  const std::size_t pages = (size + 4095) / 4096 * 4096;
  // Nothing can be read before and behind it.
  auto* const room =
      static_cast<unsigned char*>(mmap(nullptr, pages + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  unsigned char* const image = room + 4096;
  ASSERT_EQ(mprotect(image, pages, PROT_READ | PROT_WRITE), 0);
  for (const ElfW(Phdr) & segment : segments)
    if (segment.p_type == PT_LOAD)
      std::memcpy(image + segment.p_vaddr, bytes.data() + segment.p_offset, segment.p_filesz);
  const auto base = reinterpret_cast<std::uintptr_t>(image);
  const auto ask = [&] {
    const LoadedElf elf(base, segments.data(), segments.size(), LoadedElf::Access::guarded);
    char name[64];
    elf.find_symbol("probe", gnu_hash("probe"), "NODE_1");
    elf.find_function("no_such_function", gnu_hash("no_such_function"));
    elf.imports("malloc");
    elf.needs("libc.so.6");
    elf.soname(name, sizeof name);
    LoadedElf::Function function{base + 16, 0};
    std::size_t reads = 256;
    elf.find_functions(&function, 1, reads);
    elf.copy_name(function, name, sizeof name);
    elf.defines_version("NODE_1");
    elf.has_dynamic_address(base);
    elf.each_binding([](std::string_view) { return true; },
                     [](void*, std::string_view, std::uintptr_t, std::uintptr_t) { return true; }, nullptr);
    return elf.find_symbol("probe", gnu_hash("probe"));
  };
  ASSERT_NE(ask(), nullptr);
  // The tables come before the code.
  const std::size_t end = std::min<std::size_t>(segments[0].p_memsz + 4096, size);
  for (std::size_t at = sizeof header; at < end; at += 3)
    for (const unsigned value : {0x00U, 0x7fU, 0xffU}) {
      const unsigned char kept = std::exchange(image[at], static_cast<unsigned char>(value));
      ask();
      image[at] = kept;
    }
  munmap(room, pages + 8192);
}

}  // namespace
}  // namespace kshim::shim
