// SPDX-License-Identifier: Apache-2.0
#include "analyzer/device_code/mapped_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

#include "kshim/files/open_file.h"

namespace kshim::device_code {

/// A mapping that the handler of SIGBUS knows. Never freed, used again: the handler may be looking at it.
struct MappedFile::Guard {
  std::atomic<std::uintptr_t> begin{0};  ///< 0: free
  std::atomic<std::size_t> size{0};
  std::atomic<bool> shrunk{false};
  std::atomic<bool> taken{false};
  Guard* next = nullptr;
};

namespace {

std::atomic<void*> g_guards{nullptr};  // a list that only grows

std::uintptr_t page_size() {
  static const auto size = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

/// The sparse files among those that are mapped: hardly ever one.
struct Sparse {
  std::mutex lock;
  std::map<const std::byte*, std::vector<files::DataRange>> files;
  std::atomic<std::size_t> count{0};
};
Sparse& sparse() {
  static Sparse all;
  return all;
}

void note_holes(const files::OpenFile& file, Bytes bytes) {
  std::vector<files::DataRange> ranges = files::data_ranges(file.fd.get(), file.status);
  if (ranges.size() == 1 && ranges.front().begin == 0 && ranges.front().end == bytes.size()) return;
  const std::lock_guard guard(sparse().lock);
  sparse().files[bytes.data()] = std::move(ranges);
  sparse().count = sparse().files.size();
}

void forget_holes(Bytes bytes) {
  if (sparse().count == 0) return;
  const std::lock_guard guard(sparse().lock);
  sparse().files.erase(bytes.data());
  sparse().count = sparse().files.size();
}

}  // namespace

/// Reading past the end of a truncated mapped file raises SIGBUS. The handler replaces the rest of the
/// mapping with zero pages so that the reader continues. Other SIGBUS signals get the default action.
void on_bus_error(int signal, siginfo_t* info, void* /*context*/) noexcept {
  const int error = errno;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (auto* guard = static_cast<MappedFile::Guard*>(g_guards.load()); guard != nullptr;
       guard = guard->next) {
    const std::uintptr_t begin = guard->begin.load();
    const std::size_t size = guard->size.load();
    if (begin == 0 || address < begin || address - begin >= size) continue;
    const std::uintptr_t from = address / page_size() * page_size();
    guard->shrunk.store(true);
    const void* zeros = ::mmap(reinterpret_cast<void*>(from), begin + size - from, PROT_READ,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    if (zeros == MAP_FAILED) break;
    errno = error;
    return;
  }
  ::signal(signal, SIG_DFL);  // and it happens again
  errno = error;
}

namespace {

void install_handler() {
  static const bool installed = [] {
    page_size();
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    return ::sigaction(SIGBUS, &action, nullptr) == 0;
  }();
  static_cast<void>(installed);
}

}  // namespace

MappedFile::MappedFile(Bytes bytes) : bytes_(bytes) {
  install_handler();
  for (auto* guard = static_cast<Guard*>(g_guards.load()); guard != nullptr && guard_ == nullptr;
       guard = guard->next)
    if (!guard->taken.exchange(true)) guard_ = guard;
  if (guard_ == nullptr) {
    guard_ = new Guard;  // NOLINT(cppcoreguidelines-owning-memory): kept for good
    guard_->taken = true;
    void* first = g_guards.load();
    do guard_->next = static_cast<Guard*>(first);
    while (!g_guards.compare_exchange_weak(first, guard_));
  }
  guard_->shrunk = false;
  guard_->size = bytes.size();
  guard_->begin = reinterpret_cast<std::uintptr_t>(bytes.data());
}

Stretch data_behind(Bytes file, std::uint64_t at) {
  if (sparse().count == 0) return {at, file.size()};
  const std::lock_guard guard(sparse().lock);
  const auto found = sparse().files.find(file.data());
  if (found == sparse().files.end()) return {at, file.size()};
  const auto range = std::ranges::upper_bound(found->second, at, {}, &files::DataRange::end);
  if (range == found->second.end()) return {file.size(), file.size()};
  return {std::max(at, range->begin), std::min<std::uint64_t>(range->end, file.size())};
}

bool MappedFile::has_shrunk() const noexcept { return guard_ != nullptr && guard_->shrunk.load(); }

std::variant<MappedFile, std::string> MappedFile::open(const std::filesystem::path& path) {
  const files::OpenFile file = files::open_to_read(path);
  if (!file)
    return file.error == EISDIR || file.error == EINVAL ? "is not a regular file with contents" : file.why;
  if (file.status.st_size <= 0) return std::string("is not a regular file with contents");
  const auto size = static_cast<std::size_t>(file.status.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd.get(), 0);
  if (data == MAP_FAILED) return fmt::format("cannot be mapped ({})", std::generic_category().message(errno));
  const Bytes bytes(static_cast<const std::byte*>(data), size);
  note_holes(file, bytes);
  return MappedFile(bytes);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})), guard_(std::exchange(other.guard_, nullptr)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(guard_, other.guard_);
  return *this;
}

MappedFile::~MappedFile() {
  if (guard_ != nullptr) guard_->begin = 0;
  forget_holes(bytes_);
  if (!bytes_.empty())
    ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());  // NOLINT: munmap wants it mutable
  if (guard_ != nullptr) guard_->taken = false;
}

}  // namespace kshim::device_code
