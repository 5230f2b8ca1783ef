// SPDX-License-Identifier: Apache-2.0
#include "track/object_records.h"

#include <unistd.h>

#include <atomic>

#include "cuda/cuda_libraries.h"
#include "cuda/hooks.h"
#include "guest/errno_keeper.h"
#include "guest/syscalls.h"
#include "guest/text_buffer.h"
#include "guest/timed_lock.h"
#include "process/loaded_objects.h"
#include "process/scattered_read.h"
#include "report/report_file.h"

namespace kshim::shim {
namespace {

using report::Field;
using report::RecordType;

PatientLock g_lock;  // of writing an object; taken before those of objects.cpp and report_file.cpp
// By identity: the number of the report that has it.
std::atomic<std::uint32_t> g_objects[kMaxIdentities];
std::atomic<std::uint32_t> g_libraries[kMaxIdentities];

std::atomic<std::uint32_t> g_visited_report{0};
std::atomic<std::uint64_t> g_visited{
    0};  ///< `load` of the last object that was looked at for g_visited_report

bool is_new(std::atomic<std::uint32_t>& seen, std::uint32_t number) noexcept {
  return seen.exchange(number, std::memory_order_acq_rel) != number;
}

/// A file's name; little of the stack, as _exit may be called in a signal handler.
using NameText = Text<255>;
using ReleaseText = Text<16>;

/// What follows ".so." in the name of the file behind the soname's link: 13.1.0.3. `path`: kept text, which a
/// NUL ends.
std::string_view version_of(std::string_view path, NameText& target) noexcept {
  char text[512];
  const ssize_t got = raw::read_link(path.data(), text, sizeof text);
  target << base_name(got > 0 ? std::string_view(text, static_cast<std::size_t>(got)) : path);
  const std::string_view name = target.view();
  const std::size_t mark = name.find(".so.");
  return mark == std::string_view::npos ? std::string_view() : name.substr(mark + 4);
}

/// Each part of cuDNN exports its release as four bytes, 0x00091300 = 9.19.0, which no file's name in a wheel
/// tells. cuDNN 8 and 9.
bool add_cudnn_version(const LoadedObject& object, ReleaseText& out) noexcept {
  static constexpr std::string_view kNames[] = {"cudnn_graph_version", "cudnn_ops_infer_version",
                                                "cudnn_cnn_infer_version", "cudnn_adv_infer_version",
                                                "cudnn_ops_train_version"};
  if (!base_name(object.path).starts_with("libcudnn")) return false;
  for (const std::string_view name : kNames) {
    const void* datum = object.elf.find_symbol(name, gnu_hash(name));
    if (datum == nullptr) continue;
    std::uint32_t value = 0;
    if (!object.elf.copy(reinterpret_cast<std::uintptr_t>(datum), value) || (value >> 24U) != 0 ||
        (value >> 16U) == 0)
      return false;
    out << (value >> 16U) << "." << ((value >> 8U) & 0xffU) << "." << (value & 0xffU);
    return true;
  }
  return false;
}

bool write_library(void* context, const LoadedObject& object) {
  const std::uint32_t number = *static_cast<const std::uint32_t*>(context);
  if (!is_nvidia_library(object.path) && !is_driver_file(object.path) && !is_shared_runtime(object.path))
    return true;
  if (object.identity >= kMaxIdentities || !is_new(g_libraries[object.identity], number)) return true;
  NameText target;
  std::string_view version = version_of(object.path, target);
  ReleaseText release;
  if (version.find('.') == std::string_view::npos && add_cudnn_version(object, release))
    version = release.view();
  const std::string_view soname = object.soname.empty() ? base_name(object.path) : object.soname;
  const FileInfo file = file_of_identity(object.identity);
  write_record<RecordType::library>([&](auto& record) {
    record.template add<Field::library_soname>(soname);
    record.template add<Field::library_path>(object.path);
    record.template add<Field::library_version>(version);
    record.template add<Field::library_build_id>(file.build_id.empty() ? std::string_view()
                                                                       : file.build_id.view());
  });
  return true;
}

}  // namespace

void announce_object(std::uint32_t identity, std::string_view runtime) noexcept {
  const std::uint32_t number = begin_report();
  if (number == 0 || identity == 0 || identity >= kMaxIdentities) return;
  if (g_objects[identity].load(std::memory_order_acquire) == number) return;
  // Nobody may refer to it before it is written: a second thread waits here for the first.
  const LockGuard guard(g_lock);
  if (!guard || g_objects[identity].load(std::memory_order_acquire) == number) return;
  if (const LoadedObject object = find_object_of_identity(identity); object) {
    PageCache pages;
    if (object.elf.through(pages).imports("__cudaRegisterFatBinary")) runtime = "shared";
  }
  const FileInfo file = file_of_identity(identity);
  write_record<RecordType::object>([&](auto& record) {
    record.template add<Field::object_id>(std::uint64_t{identity});
    record.template add<Field::object_path>(file.path.empty() ? std::string_view("?") : file.path);
    record.template add<Field::object_build_id>(file.build_id.empty() ? std::string_view()
                                                                      : file.build_id.view());
    record.template add<Field::object_runtime>(runtime);
    record.template null<Field::object_fatbins>();
    record.template null<Field::object_images>();
  });
  g_objects[identity].store(number, std::memory_order_release);
}

void announce_libraries() noexcept {
  const ErrnoKeeper keeper;
  std::uint32_t number = begin_report();
  if (number == 0) return;
  // Only what was loaded since the last time.
  const std::uint64_t seen = g_visited_report.exchange(number) == number ? g_visited.load() : 0;
  g_visited.store(for_each_loaded_object(write_library, &number, seen));
}

}  // namespace kshim::shim
