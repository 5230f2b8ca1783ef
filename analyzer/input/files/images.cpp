// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/files/images.h"

#include <fmt/core.h>

#include <algorithm>

#include "analyzer/input/files/container.h"

namespace kshim::scan {
namespace {

constexpr std::size_t kTarHeader = 512;
constexpr std::size_t kTarName = 100;

/// The first bytes of what a compressed stream holds.
std::vector<std::byte> peek(Bytes packed) {
  std::vector<std::byte> head;
  inflate(packed, UINT64_MAX, [&](Bytes block) {
    head.insert(
        head.end(), block.begin(),
        block.begin() + static_cast<std::ptrdiff_t>(std::min(block.size(), kTarHeader - head.size())));
    return head.size() < kTarHeader;
  });
  return head;
}

bool is_tar(Bytes head) { return container_kind(head, ".tar") == ContainerKind::tar; }

}  // namespace

bool is_compressed_tar(Bytes bytes) { return is_compressed(bytes) && is_tar(peek(bytes)); }

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
    const std::vector<std::byte> head = peek(tar);
    const std::string_view name = text_of(head).substr(0, kTarName);
    if (!is_tar(head) || !may_be_image_archive(name.substr(0, name.find('\0')))) return std::nullopt;
    UnnamedFile file;
    bool full = file.path().empty();
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
  } else if (!is_tar(tar.first(std::min(tar.size(), kTarHeader)))) {
    return std::nullopt;
  }
  auto archive = ImageArchive::of_tar(tar);
  if (!archive) return std::nullopt;
  out.files.push_back(std::move(std::get<analysis::MappedFile>(opened)));
  out.archive = std::move(*archive);
  return out;
}

}  // namespace kshim::scan
