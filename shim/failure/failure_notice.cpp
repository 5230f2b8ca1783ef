// SPDX-License-Identifier: Apache-2.0
#include "failure/failure_notice.h"

#include <algorithm>
#include <atomic>
#include <iterator>

#include "failure/kernel_name.h"
#include "guest/slices.h"
#include "guest/text_buffer.h"
#include "kshim/base/cuda_error.h"
#include "report/stderr_log.h"

namespace kshim::shim {
namespace {

/// CUresult and cudaError_t share these numbers (cuda.h, driver_types.h).
enum Code : int {
  kOutOfMemory = 2,
  kInvalidDeviceFunction = 98,
  kNoBinaryForGpu = 209,
  kUnsupportedPtxVersion = 222,
  kPtxJitDisabled = 223,
  kNotFound = 500,
};

class NoticeText {
 public:
  explicit NoticeText(std::span<char> out) noexcept : out_(out) {}
  NoticeText& operator<<(std::string_view text) noexcept {
    append_printable(text, out_.data(), out_.size(), size_);
    return *this;
  }
  NoticeText& operator<<(std::uint64_t value) noexcept {
    Text<20> digits;
    digits << value;
    return *this << digits.view();
  }
  /// Appends a text of any length, shortened so that the rest stays on the screen.
  NoticeText& shortened(std::string_view text, std::size_t limit) noexcept {
    if (text.size() <= limit) return *this << text;
    return *this << text.substr(0, limit) << "...";
  }
  void end_line() noexcept {
    if (size_ < out_.size()) out_[size_++] = '\n';
  }
  NoticeText& row(std::string_view label) noexcept {
    *this << "kshim:   " << label;
    for (std::size_t i = label.size(); i < 11; ++i) *this << " ";
    return *this;
  }
  std::size_t size() const noexcept { return size_; }

 private:
  std::span<char> out_;
  std::size_t size_ = 0;
};

void write_gpu(NoticeText& block, const Notice& notice) noexcept {
  if (!notice.device) {
    block << "the GPU";
    return;
  }
  block << "GPU " << *notice.device;
  if (notice.device_name.empty() && notice.device_arch.empty()) return;
  block << " (";
  block.shortened(notice.device_name, 60);
  block << (notice.device_name.empty() || notice.device_arch.empty() ? "" : ", ") << notice.device_arch
        << ")";
}

void write_kernel(NoticeText& block, const Notice& notice) noexcept {
  if (notice.kernel.empty()) {
    block << (notice.object.empty() ? "device code" : base_name(notice.object));
    return;
  }
  block << "kernel ";
  block.shortened(short_kernel_name(notice.kernel).view(), 100);
}

void write_error(NoticeText& block, const Notice& notice) noexcept {
  if (!notice.compiler.empty()) {
    block << notice.code_name << " (" << static_cast<std::uint64_t>(notice.code) << ")";
    return;
  }
  const CudaError* error = find_cuda_error(notice.code);
  const char* name = error == nullptr ? nullptr : notice.runtime ? error->runtime_name : error->driver_name;
  if (name == nullptr && error != nullptr) name = notice.runtime ? error->driver_name : error->runtime_name;
  if (name != nullptr) block << name << " ";
  block << "(" << static_cast<std::uint64_t>(notice.code < 0 ? 0 : notice.code) << ")";
}

void write_headline(NoticeText& block, const Notice& notice) noexcept {
  block << "kshim: ";
  if (!notice.compiler.empty()) {
    block << notice.compiler << (notice.compiler_version.empty() ? "" : " ") << notice.compiler_version
          << " does not compile for " << notice.asked;
    block.end_line();
    return;
  }
  switch (notice.code) {
    case kNoBinaryForGpu:
      write_kernel(block, notice);
      block << " has no image for ";
      write_gpu(block, notice);
      break;
    case kUnsupportedPtxVersion:
      write_kernel(block, notice);
      block << ": its PTX is newer than the driver's compiler for ";
      write_gpu(block, notice);
      break;
    case kPtxJitDisabled:
      write_kernel(block, notice);
      block << " has only PTX for ";
      write_gpu(block, notice);
      block << ", and compiling PTX is switched off";
      break;
    case kNotFound:
    case kInvalidDeviceFunction:
      write_kernel(block, notice);
      block << " is not in the image loaded on ";
      write_gpu(block, notice);
      break;
    default: {
      const CudaError* error = find_cuda_error(notice.code);
      block << (notice.api.empty() ? "a CUDA call" : notice.api) << " failed on ";
      write_gpu(block, notice);
      block << ": " << (error == nullptr ? "unknown error" : error->message);
    }
  }
  block.end_line();
}

}  // namespace

std::size_t format_notice(const Notice& notice, std::string_view report, std::span<char> out) noexcept {
  constexpr std::size_t kListed = 12;
  constexpr std::size_t kTail = 700;  // the report's line always fits
  NoticeText block(out.first(out.size() > 2 * kTail ? out.size() - kTail : out.size()));
  write_headline(block, notice);
  if (!notice.object.empty()) {
    block.row("in").shortened(notice.object, 400);
    block.end_line();
  }
  if (!notice.have.empty()) {
    block.row(notice.compiler.empty() ? "built for" : "compiles");
    for (std::size_t i = 0; i < std::min(notice.have.size(), kListed); ++i)
      block << (i == 0 ? "" : ", ") << notice.have[i];
    if (notice.have.size() > kListed)
      block << ", and " << static_cast<std::uint64_t>(notice.have.size() - kListed) << " more";
    block.end_line();
  }
  if (!notice.need.empty()) {
    constexpr std::string_view kReal = "sm_";
    block.row("needs") << notice.need;
    if (notice.code == kNoBinaryForGpu && notice.need.starts_with(kReal))
      block << ", or PTX for compute_" << part_of(notice.need, kReal.size()) << " or older";
    block.end_line();
  }
  if (!notice.api.empty()) {
    block.row("call").shortened(notice.api, 80);
    block << ": ";
    write_error(block, notice);
    block.end_line();
  }
  if (!notice.python_file.empty()) {
    block.row("from").shortened(notice.python_file, 300);
    block << ":" << notice.python_line;
    if (!notice.python_function.empty()) {
      block << ", in ";
      block.shortened(notice.python_function, 100);
    }
    block.end_line();
  }
  if (notice.unwatched_table) {
    block.row("note")
        << "loads by CUDA runtimes before 12 are not recorded; KSHIM_PATCH_TABLE=1 records them";
    block.end_line();
  }
  std::size_t size = block.size();
  if (report.empty()) return size;
  NoticeText tail(out.subspan(size));
  tail.row("explain") << "kshim analyze ";
  tail.shortened(report, 600);
  tail.end_line();
  return size + tail.size();
}

void print_notice(const Notice& notice, std::string_view report) noexcept {
  constexpr std::size_t kMaxKinds = 16;
  constexpr int kCompilers = 1 << 16;  // their codes count from 1 like CUDA's
  static std::atomic<int> g_raised[kMaxKinds];
  constexpr int kInvalidHandle = 400;
  if (!log_enabled(report.empty() ? LogLevel::error : LogLevel::warn)) return;  // else nothing tells of it
  // The handle is null because an earlier call failed, for which a notice was printed.
  if (notice.code == kInvalidHandle && g_raised[0].load() != 0) return;
  const int kind = notice.compiler.empty() ? notice.code : notice.code | kCompilers;
  for (std::atomic<int>& slot : g_raised) {
    int none = 0;
    if (slot.compare_exchange_strong(none, kind)) {
      char text[4096];
      write_stderr({text, format_notice(notice, report, text)});
      return;
    }
    if (none == kind) return;
  }
}

}  // namespace kshim::shim
