// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/files/images.h"

#include <fmt/core.h>

#include <algorithm>

#include "analyzer/input/files/container.h"

namespace kshim::scan {
namespace {

constexpr std::size_t kTarHeader = 512;

bool is_tar(Bytes head) {
  return container_kind(head.first(std::min(head.size(), kTarHeader)), ".tar") == ContainerKind::tar;
}

/// The name of the first entry of a compressed tar; nothing where the bytes are none.
std::optional<std::string> first_name(Bytes packed) {
  constexpr std::size_t kEnough = std::size_t{1} << 20;  // headers before the first entry belong to it
  std::vector<std::byte> head;
  inflate(packed, UINT64_MAX, [&](Bytes block) {
    head.insert(head.end(), block.begin(), block.end());
    return head.size() < kEnough;
  });
  std::optional<std::string> out;
  if (is_tar(head))
    each_tar_entry(head, [&](const TarEntry& entry) {
      out = entry.name;
      return false;
    });
  return out;
}

}  // namespace

bool is_compressed_tar(Bytes bytes) { return is_compressed(bytes) && first_name(bytes).has_value(); }

std::optional<OpenImages> open_images(const Input& input, std::vector<std::string>& notes) {
  OpenImages out;
  if (input.image_folder) {
    auto archive = ImageArchive::of_folder(input.path);
    if (!archive) return std::nullopt;
    out.archive = std::move(*archive);
    return out;
  }
  auto opened = analysis::MappedFile::open(input.path);
  if (!std::holds_alternative<analysis::MappedFile>(opened)) return std::nullopt;
  Bytes tar = std::get<analysis::MappedFile>(opened).bytes();
  if (is_compressed(tar)) {
    const auto name = first_name(tar);
    if (!name || !may_be_image_archive(*name)) return std::nullopt;
    UnnamedFile file;
    bool full = !file.create();
    const std::string failure = full ? std::string() : inflate(tar, Limits{}.total_bytes, [&](Bytes block) {
      full = !file.append(block);
      return !full;
    });
    if (full || !failure.empty())
      notes.push_back(fmt::format("{}: {}", input.shown(),
                                  full ? "does not fit into the folder for temporary files" : failure));
    if (full) return std::nullopt;
    opened = analysis::MappedFile::open(file.path());
    if (!std::holds_alternative<analysis::MappedFile>(opened)) return std::nullopt;
    tar = std::get<analysis::MappedFile>(opened).bytes();
    out.kept.push_back(std::move(file));
  } else if (!is_tar(tar)) {
    return std::nullopt;
  }
  auto archive = ImageArchive::of_tar(tar);
  if (!archive) return std::nullopt;
  out.files.push_back(std::move(std::get<analysis::MappedFile>(opened)));
  out.archive = std::move(*archive);
  return out;
}

}  // namespace kshim::scan
