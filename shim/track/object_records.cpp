// SPDX-License-Identifier: Apache-2.0
#include "track/object_records.h"

#include "cuda/cuda_libraries.h"
#include "cuda/hooks.h"
#include "guest/options.h"
#include "guest/text_buffer.h"
#include "process/loaded_objects.h"
#include "process/scattered_read.h"
#include "report/report_file.h"
#include "report/stderr_log.h"

namespace kshim::shim {
namespace {

using report::Field;
using report::RecordType;

using ReleaseText = Text<16>;

/// What follows ".so." in the file's name: 13.1.0.3. The command looks behind a soname's link.
std::string_view version_of(std::string_view path) noexcept {
  const std::string_view name = base_name(path);
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

struct Libraries {
  ObjectRecords& objects;
  Report& report;
  std::uint32_t number;
  std::uint32_t* written;
};

/// Triton's compiler refuses GPUs by itself; that it was there is all that is seen of it.
bool is_compiler(std::string_view path) noexcept { return base_name(path).starts_with("libtriton."); }

bool write_library(void* context, const LoadedObject& object) {
  auto& out = *static_cast<Libraries*>(context);
  if (!options().targets.empty() && !is_shim(object.elf.base()))
    out.objects.announce(out.report, object.identity, {});
  if (!is_nvidia_library(object.path) && !is_driver_file(object) && !is_shared_runtime(object.path) &&
      !is_compiler(object.path))
    return true;
  if (object.identity == 0 || out.written[object.identity] == out.number) return true;
  out.written[object.identity] = out.number;
  std::string_view version = version_of(object.path);
  ReleaseText release;
  if (version.find('.') == std::string_view::npos && add_cudnn_version(object, release))
    version = release.view();
  const std::string_view soname = object.soname.empty() ? base_name(object.path) : object.soname;
  const FileInfo file = file_of_identity(object.identity);
  out.report.write<RecordType::library>([&](auto& record) {
    record.template add<Field::library_soname>(soname);
    record.template add<Field::library_path>(object.path);
    record.template add<Field::library_version>(version);
    record.template add<Field::library_build_id>(file.build_id.empty() ? std::string_view()
                                                                       : file.build_id.view());
  });
  return true;
}

}  // namespace

void ObjectRecords::announce(Report& report, std::uint32_t identity, std::string_view runtime) noexcept {
  const std::uint32_t number = report.begin();
  if (identity == 0 && has_unnumbered_files() && !said_) {
    said_ = true;
    log_line(LogLevel::warn, "too many library files were mapped: the later ones have no object record");
  }
  if (number == 0 || identity == 0 || objects_[identity] == number) return;
  if (const LoadedObject object = find_object_of_identity(identity); object) {
    PageCache pages;
    if (object.elf.through(pages).imports("__cudaRegisterFatBinary")) runtime = "shared";
  }
  const FileInfo file = file_of_identity(identity);
  const bool written = report.write<RecordType::object>([&](auto& record) {
    record.template add<Field::object_id>(std::uint64_t{identity});
    record.template add<Field::object_path>(file.path.empty() ? std::string_view("?") : file.path);
    record.template add<Field::object_build_id>(file.build_id.empty() ? std::string_view()
                                                                      : file.build_id.view());
    record.template add<Field::object_runtime>(runtime);
    record.template null<Field::object_fatbins>();
    record.template null<Field::object_images>();
  });
  if (!written) return;
  objects_[identity] = number;
  report.zero_if_lost(objects_[identity]);
}

void ObjectRecords::announce_libraries(Report& report) noexcept {
  if (visited_report_ == report.begin() && !visits_.is_due()) return;
  announce_all(report, false);
}

void ObjectRecords::announce_known_libraries(Report& report) noexcept { announce_all(report, true); }

void ObjectRecords::announce_all(Report& report, bool known_only) noexcept {
  Libraries libraries{*this, report, report.begin(), libraries_};
  if (libraries.number == 0) return;
  // Only objects that were mapped since the last call.
  const std::uint64_t seen = visited_report_ == libraries.number ? visited_ : 0;
  visited_report_ = libraries.number;
  visits_.run([&] {
    visited_ = for_each_loaded_object(write_library, &libraries, {.after = seen, .known_only = known_only});
  });
}

}  // namespace kshim::shim
