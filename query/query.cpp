// SPDX-License-Identifier: Apache-2.0
// The exported functions: what the caller hands over is checked here, and nothing but the answer leaves.
#include "kshim/query.h"

#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "query/cache.h"

#define KSHIM_EXPORT extern "C" __attribute__((visibility("default")))

namespace kshim::query {
namespace {

constexpr int kMaxNumber = 999;                                // of a compute capability
constexpr std::size_t kMaxNameLength = std::size_t{1} << 16U;  // of a kernel

/// A canceled thread would leave locks behind: it is canceled afterwards.
class Uncanceled {
 public:
  Uncanceled() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~Uncanceled() { pthread_setcancelstate(before_, nullptr); }
  Uncanceled(const Uncanceled&) = delete;
  Uncanceled& operator=(const Uncanceled&) = delete;

 private:
  int before_ = 0;
};

void say(Reason reason, kshim_answer& out) noexcept {
  const ReasonText text = text_of(reason);
  out = {};
  out.reason = text.id;
  out.text = text.text;
}

bool read_question(const kshim_question* in, Question& out) noexcept {
  if (in == nullptr || in->size < sizeof(kshim_question) || in->path == nullptr) return false;
  if (in->major < 1 || in->major > kMaxNumber || in->minor < 0 || in->minor > 9 || in->driver < 0)
    return false;
  constexpr std::uint32_t kFlags =
      KSHIM_FORCE_PTX_JIT | KSHIM_DISABLE_PTX_JIT | KSHIM_FORCE_JIT | KSHIM_DISABLE_JIT;
  if ((in->flags & ~kFlags) != 0) return false;
  out.platform.device = {static_cast<std::uint16_t>(in->major), static_cast<std::uint16_t>(in->minor)};
  out.platform.driver = image::Version::from_cuda_number(in->driver);
  out.platform.jit.force_ptx_jit = (in->flags & KSHIM_FORCE_PTX_JIT) != 0;
  out.platform.jit.disable_ptx_jit = (in->flags & KSHIM_DISABLE_PTX_JIT) != 0;
  out.platform.jit.force_jit = (in->flags & KSHIM_FORCE_JIT) != 0;
  out.platform.jit.disable_jit = (in->flags & KSHIM_DISABLE_JIT) != 0;
  if (in->kernel == nullptr) return true;
  out.kernel = {in->kernel, strnlen(in->kernel, kMaxNameLength)};
  return !out.kernel.empty() && out.kernel.size() < kMaxNameLength;
}

/// False: the file changed meanwhile, and what it is now may have an answer.
bool try_answer(const char* path, const Question& question, kshim_answer& out) noexcept {
  Identity identity;
  if (const Reason reason = identify(path, identity); reason != Reason::none) {
    say(reason, out);
    return true;
  }
  SourceFile file(path, identity);
  CachedFile cached(identity);
  CodeFile* const known = cached.get();
  if (known == nullptr) {
    say(Reason::no_memory, out);
    return true;
  }
  known->answer(file, question, out);
  if (file.is_open() && !file.settled()) cached.forget();
  return out.reason != text_of(Reason::changed).id;
}

}  // namespace
}  // namespace kshim::query

KSHIM_EXPORT std::uint32_t kshim_query_version(void) { return KSHIM_QUERY_VERSION; }

KSHIM_EXPORT int kshim_query(const kshim_question* question, kshim_answer* answer) {
  using namespace kshim::query;
  constexpr int kTries = 3;  // a package manager replaces a file once
  const int error = errno;
  const Uncanceled uncanceled;
  kshim_answer out{};
  Question asked;
  if (!read_question(question, asked)) {
    say(Reason::bad_question, out);
  } else {
    for (int tries = 0; tries < kTries && !try_answer(question->path, asked, out);) ++tries;
  }
  if (answer != nullptr && answer->size > sizeof out.size) {
    out.size = answer->size;
    const std::size_t known = std::min(answer->size, sizeof out);
    std::memcpy(answer, &out, known);
    // A newer header than this library: what it has beyond is not known.
    std::memset(reinterpret_cast<char*>(answer) + known, 0, out.size - known);
  }
  errno = error;
  return out.code;
}
