// SPDX-License-Identifier: Apache-2.0
// image_list FILE...: what find_device_code() finds, one JSON object a line, for tools/compare_images and for
// people.
#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "analyzer/device_code/device_code.h"
#include "analyzer/device_code/image_contents.h"
#include "analyzer/device_code/mapped_file.h"
#include "kshim/image/decompress.h"

namespace {

using namespace kshim;
using namespace kshim::device_code;
using nlohmann::json;

const char* name_of(image::Compression compression) {
  switch (compression) {
    case image::Compression::none:
      return "stored";
    case image::Compression::lz4:
      return "lz4";
    case image::Compression::zstd:
      return "zstd";
    case image::Compression::unknown:
      break;
  }
  return "unknown";
}

const char* name_of(HostFormat host) {
  return host == HostFormat::elf ? "elf" : host == HostFormat::pe ? "pe" : "none";
}

json describe(const std::string& path, const DeviceCode& code) {
  json out{{"file", path},
           {"host", name_of(code.host)},
           {"machine", code.machine},
           {"build_id", code.build_id},
           {"fatbins", code.fatbins},
           {"searched", code.searched}};
  json& images = out["images"] = json::array();
  for (const CodeImage& each : code.images) {
    images.push_back({{"kind", image::to_name(each.candidate.kind)},
                      {"arch", image::to_name(each.candidate.kind, each.candidate.arch).view()},
                      {"isa", image::to_name(each.candidate.isa).view()},
                      {"compression", name_of(each.compression)},
                      {"relocatable", each.relocatable},
                      {"debug", each.debug},
                      {"flags", fmt::format("{:#x}", each.flags)},
                      {"offset", each.offset},
                      {"bytes", each.bytes}});
  }
  json& modules = out["modules"] = json::array();
  for (const CodeModule& each : code.modules) {
    json module{{"offset", each.offset}, {"first", each.first}, {"count", each.count}};
    if (!each.parts.empty()) module["parts"] = each.parts;
    modules.push_back(std::move(module));
  }
  json& damage = out["damage"] = json::array();
  for (const Damage& each : code.damage) damage.push_back({{"offset", each.offset}, {"what", each.what}});
  return out;
}

json kernels_of(const CodeImage& image) {
  image::Image packed;
  packed.kind = image.candidate.kind;
  packed.arch = image.candidate.arch;
  packed.compression = image.compression;
  packed.uncompressed_size = image.bytes;
  packed.payload = image.payload;
  std::vector<std::byte> plain;
  const auto size = image::decompress(packed, plain);
  if (!size) return fmt::format("the payload {}", kshim::describe(size.error().code));
  KernelLister lister;
  const auto list = lister.list(packed.kind, plain);
  if (!list.whole) return "the image cannot be read to its end";
  json out = json::array();
  for (const image::KernelSlot& each : list.kernels)
    out.push_back({{"name", each.info.name},
                   {"registers", each.info.registers},
                   {"shared_bytes", each.info.shared_bytes},
                   {"local_bytes", each.info.local_bytes}});
  return out;
}

int list_kernels(int argc, char** argv) {
  const auto opened = MappedFile::open(argv[2]);
  if (const auto* why = std::get_if<std::string>(&opened)) {
    std::fprintf(stderr, "%s: %s\n", argv[2], why->c_str());
    return 1;
  }
  const auto code = find_device_code(std::get<MappedFile>(opened).bytes());
  json out = json::object();
  for (int at = 3; at < argc; ++at) {
    const unsigned long index = std::strtoul(argv[at], nullptr, 10);
    if (index < code.images.size()) out[argv[at]] = kernels_of(code.images[index]);
  }
  std::puts(out.dump(-1, ' ', false, json::error_handler_t::replace).c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 3 && std::string_view(argv[1]) == "--kernels") return list_kernels(argc, argv);
  if (argc < 2 || argv[1][0] == '-') {
    std::fprintf(stderr, "usage: image_list FILE... | image_list --kernels FILE INDEX...\n");
    return 2;
  }
  int status = 0;
  for (int at = 1; at < argc; ++at) {
    const auto opened = MappedFile::open(argv[at]);
    if (const auto* why = std::get_if<std::string>(&opened)) {
      std::fprintf(stderr, "%s: %s\n", argv[at], why->c_str());
      status = 1;
      continue;
    }
    const auto& file = std::get<MappedFile>(opened);
    // A name that is no UTF-8 must not end the program.
    std::puts(describe(argv[at], find_device_code(file.bytes()))
                  .dump(-1, ' ', false, json::error_handler_t::replace)
                  .c_str());
  }
  return status;
}
