// SPDX-License-Identifier: Apache-2.0
// The interface as an ABI, and the library as a guest of its process.
#include <dirent.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include "query_fixture.h"

namespace kshim::test {
namespace {

class QueryGuest : public Query {
 protected:
  std::string sample(const char* name = "f.so") const {
    const std::string file =
        write(name, Bytes(host_of({FatbinBuilder{}.cubin(arch_of(80), cubin_of(80, {"scale"}))})));
    return file;
  }
};

TEST_F(QueryGuest, Version) { EXPECT_EQ(kshim_query_version(), KSHIM_QUERY_VERSION); }

TEST_F(QueryGuest, NoMoreIsWrittenThanTheCallerHasRoomFor) {
  const std::string file = sample();
  const kshim_question question{sizeof question, file.c_str(), nullptr, 8, 0, 0, 0};
  EXPECT_EQ(kshim_query(&question, nullptr), KSHIM_CODE_SASS);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{8}, offsetof(kshim_answer, reason), offsetof(kshim_answer, image),
        sizeof(kshim_answer), sizeof(kshim_answer) + 64}) {
    std::vector<char> memory(sizeof(kshim_answer) + 128, '\x5a');
    std::memcpy(memory.data(), &size, sizeof size);
    EXPECT_EQ(kshim_query(&question, reinterpret_cast<kshim_answer*>(memory.data())), KSHIM_CODE_SASS);
    std::size_t written = 0;
    std::memcpy(&written, memory.data(), sizeof written);
    EXPECT_EQ(written, size);
    for (std::size_t i = std::max(size, sizeof size); i < memory.size(); ++i)
      ASSERT_EQ(memory[i], '\x5a') << size << " at " << i;
    // What a later header has, and this library does not know, is 0.
    for (std::size_t i = sizeof(kshim_answer); i < size; ++i) ASSERT_EQ(memory[i], 0) << i;
  }
}

TEST_F(QueryGuest, BadQuestions) {
  const std::string file = sample();
  const kshim_question good{sizeof good, file.c_str(), "scale", 8, 0, 0, 0};
  const auto reason = [](const kshim_question* question) {
    kshim_answer answer{};
    answer.size = sizeof answer;
    EXPECT_EQ(kshim_query(question, &answer), KSHIM_CODE_UNKNOWN);
    return std::string(answer.reason);
  };
  EXPECT_EQ(kshim_query(&good, nullptr), KSHIM_CODE_SASS);
  EXPECT_EQ(reason(nullptr), "bad_question");
  kshim_question bad = good;
  bad.size = 8;
  EXPECT_EQ(reason(&bad), "bad_question");
  bad = good;
  bad.path = nullptr;
  EXPECT_EQ(reason(&bad), "bad_question");
  bad = good;
  bad.major = 0;
  EXPECT_EQ(reason(&bad), "bad_question");
  bad = good;
  bad.minor = -1;
  EXPECT_EQ(reason(&bad), "bad_question");
  bad = good;
  bad.driver = -1;
  EXPECT_EQ(reason(&bad), "bad_question");
  bad = good;
  bad.flags = 1U << 31U;  // of a later interface: what it means is not known
  EXPECT_EQ(reason(&bad), "bad_question");
  bad = good;
  bad.kernel = "";
  EXPECT_EQ(reason(&bad), "bad_question");
}

TEST_F(QueryGuest, ErrnoStaysAndNoDescriptorDoes) {
  const auto descriptors = [] {
    int count = 0;
    DIR* folder = ::opendir("/proc/self/fd");
    while (::readdir(folder) != nullptr) ++count;
    ::closedir(folder);
    return count;
  };
  const std::string file = sample();
  const int before = descriptors();
  for (const std::string& each :
       {file, path("missing"), write("damaged", Bytes(host_of({})).first(100)), std::string(folder_)}) {
    errno = 77;
    ask(each, 80, "scale");
    EXPECT_EQ(errno, 77) << each;
  }
  EXPECT_EQ(descriptors(), before);
}

TEST_F(QueryGuest, SixteenThreads) {
  // More files than the cache keeps, each with a kernel of its own name, in an order of its own in each
  // thread.
  constexpr unsigned kFiles = 100, kThreads = 16;
  std::vector<std::string> files;
  for (unsigned i = 0; i < kFiles; ++i) {
    const std::string name = "kernel" + std::to_string(i);
    files.push_back(write(name + ".so", Bytes(host_of({FatbinBuilder{}
                                                           .cubin(arch_of(80), cubin_of(80, {name.c_str()}))
                                                           .ptx(arch_of(80), {8, 0}, ptx_of(80, {"both"}))
                                                           .cubin(arch_of(90), cubin_of(90, {"both"}))}))));
  }
  settle();
  std::atomic<unsigned> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (unsigned k = 0; k < 4 * kFiles; ++k) {
        const unsigned i = (k * 7 + t * 13) % kFiles;
        const std::string kernel = "kernel" + std::to_string(i);
        if (ask(files[i], 86, kernel.c_str()).code != KSHIM_CODE_SASS) ++wrong;
        if (ask(files[i], 90, kernel.c_str()).reason != "kernel_missing_from_image") ++wrong;
        if (ask(files[i], 90, "both").code != KSHIM_CODE_SASS) ++wrong;
        if (ask(files[i], 120, "both").code != KSHIM_CODE_JIT) ++wrong;
        if (ask(files[i], 75).code != KSHIM_CODE_NONE) ++wrong;
      }
    });
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(wrong, 0U);
}

TEST_F(QueryGuest, AForksChildAnswers) {
  const std::string file = sample();
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  // Some thread holds a lock at most times.
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      while (!stop) {
        ask(file, 80, "scale");
        ask(file, 90, "absent");
      }
    });
  for (int i = 0; i < 50; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);  // what waits forever ends with a signal
      const kshim_question question{sizeof question, file.c_str(), "scale", 8, 0, 0, 0};
      ::_exit(kshim_query(&question, nullptr));
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), KSHIM_CODE_SASS);
  }
  stop = true;
  for (std::thread& each : threads) each.join();
}

TEST_F(QueryGuest, ACanceledThreadLeavesNoLock) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer takes the end of a canceled thread for a fault";
#endif
  // Just written: it is read each time, by calls that are points of cancellation elsewhere.
  const std::string file =
      write("f.so", Bytes(host_of({FatbinBuilder{}.cubin(arch_of(80), cubin_of(80, {"scale"}))})));
  for (int i = 0; i < 20; ++i) {
    pthread_t thread;
    const auto body = [](void* path) -> void* {
      const kshim_question question{
          sizeof question, static_cast<const std::string*>(path)->c_str(), "scale", 8, 0, 0, 0};
      for (;;) {
        kshim_query(&question, nullptr);
        pthread_testcancel();
      }
    };
    ASSERT_EQ(pthread_create(&thread, nullptr, body, const_cast<std::string*>(&file)), 0);
    ::usleep(1000);
    pthread_cancel(thread);
    const kshim_question question{sizeof question, file.c_str(), "scale", 8, 0, 0, 0};
    EXPECT_EQ(kshim_query(&question, nullptr), KSHIM_CODE_SASS);
    pthread_join(thread, nullptr);
  }
}

TEST_F(QueryGuest, MemoryThatRunsOutIsAnAnswer) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer needs its address space";
#endif
  const std::string file = sample();
  const std::string large = sample("large.so");
  ASSERT_EQ(::truncate(large.c_str(), std::int64_t{8} << 30U), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{std::uint64_t{1} << 30U, std::uint64_t{1} << 30U};
    ::setrlimit(RLIMIT_AS, &limit);
    if (ask(large, 80).reason != "no_memory") ::_exit(1);
    ::_exit(ask(file, 80).code == KSHIM_CODE_SASS ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace kshim::test
