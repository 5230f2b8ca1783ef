// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/files/container.h"

#include <locale.h>

#include "analyzer/input/files/container_walk.h"
#include "kshim/image/archive.h"

namespace kshim::input {
namespace {

constexpr std::size_t kTarMagicAt = 257;
constexpr std::size_t kTarChecksumAt = 148;
constexpr std::size_t kTarChecksumSize = 8;

using Suffixes = std::array<std::string_view, 9>;
constexpr Suffixes kPackedTars = {".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tbz",
                                  ".tar.xz", ".txz", ".tar.zst", ".tzst"};
constexpr Suffixes kContainers = {".whl", ".zip", ".conda", ".egg", ".tar", ".a", ".lib"};

bool ends_with_one_of(std::string_view name, const Suffixes& suffixes) {
  const auto equal = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + ('a' - 'A') : a) == b; };
  return std::ranges::any_of(suffixes, [&](std::string_view suffix) {
    return !suffix.empty() && name.size() >= suffix.size() &&
           std::equal(suffix.begin(), suffix.end(), name.end() - static_cast<std::ptrdiff_t>(suffix.size()),
                      [&](char a, char b) { return equal(b, a); });
  });
}

/// Old tars have no magic: the header's sum, with blanks in place of the sum.
bool has_tar_checksum(std::string_view header) {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < kTarHeader; ++at) {
    const bool within = at >= kTarChecksumAt && at < kTarChecksumAt + kTarChecksumSize;
    sum += within ? std::uint64_t{' '} : static_cast<unsigned char>(header[at]);
  }
  std::uint64_t stated = 0;
  for (const char c : header.substr(kTarChecksumAt, kTarChecksumSize))
    if (c >= '0' && c <= '7') stated = stated * 8 + static_cast<std::uint64_t>(c - '0');
  return sum == stated;
}

/// libarchive converts names of some formats to the thread's locale: one that holds all of them. Made once
/// and never freed, for all threads: each container had one of its own, which glibc loads with its converters
/// and unloads again.
class Utf8Names {
 public:
  Utf8Names() {
    static const locale_t utf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    if (utf8 != nullptr) before_ = ::uselocale(utf8);
  }
  Utf8Names(const Utf8Names&) = delete;
  Utf8Names& operator=(const Utf8Names&) = delete;
  ~Utf8Names() {
    if (before_ != nullptr) ::uselocale(before_);
  }

 private:
  locale_t before_ = nullptr;
};

void each_member(ContainerKind kind, Bytes container, const std::string& name, const ContainerLimits& limits,
                 const ContainerVisitor& visitor) {
  const Utf8Names names;
  Walk walk(limits, visitor, name, limits.of(container.size()));
  if (kind != ContainerKind::zip && visitor.queue != nullptr && !visitor.queue->take_whole()) return;
  walk.container(kind, container, {});
  if (walk.budget.exhausted())
    walk.note({}, {}, 0,
              fmt::format("inflates to more than {} bytes: the rest is not read", walk.budget.all()));
}

}  // namespace

bool is_container_name(std::string_view name) noexcept {
  return ends_with_one_of(name, kContainers) || ends_with_one_of(name, kPackedTars);
}

ContainerKind container_kind(Bytes first_bytes, std::string_view name) noexcept {
  const std::string_view text = text_of(first_bytes);
  if (text.starts_with(image::kArchiveMagic) || text.starts_with(image::kThinArchiveMagic))
    return ContainerKind::ar;
  // A local header; the end record of an empty zip; the mark of one written in parts.
  if (text.starts_with("PK\3\4") || text.starts_with("PK\5\6") || text.starts_with("PK\7\10"))
    return ContainerKind::zip;
  if (text.size() >= kTarHeader && text.substr(kTarMagicAt, 5) == "ustar") return ContainerKind::tar;
  if (text.size() >= kTarHeader && ends_with_one_of(name, {".tar"}) && has_tar_checksum(text))
    return ContainerKind::tar;
  if (!is_compressed(first_bytes)) return ContainerKind::none;
  return ends_with_one_of(name, kPackedTars) ? ContainerKind::tar : ContainerKind::packed;
}

bool is_compressed(Bytes first_bytes) noexcept {
  using namespace std::string_view_literals;
  const std::string_view text = text_of(first_bytes);
  return text.starts_with("\x1f\x8b") || text.starts_with("BZh") || text.starts_with("\xfd\x37zXZ\0"sv) ||
         text.starts_with("\x28\xb5\x2f\xfd");
}

void each_member(Bytes container, const std::string& name, const ContainerLimits& limits,
                 const ContainerVisitor& visitor) {
  const ContainerKind kind = container_kind(container.first(std::min(container.size(), kTarHeader)), name);
  each_member(kind, container, name, limits, visitor);
}

void each_tar_member(Bytes tar, const ContainerLimits& limits, const ContainerVisitor& visitor) {
  each_member(ContainerKind::tar, tar, {}, limits, visitor);
}

void each_tar_entry(Bytes tar, const std::function<bool(const TarEntry&)>& visit) {
  const Utf8Names names;
  Stream stream(Stream::Format::tar, tar);
  ByteBudget budget(tar.size());
  while (stream.next_entry() == Stream::Step::entry && !stream.compressed()) {
    TarEntry entry{stream.name(), stream.link(), {}};
    if (stream.is_file() && stream.size() != 0) entry.bytes = stream.in_place(budget);
    if (!visit(entry)) return;
    stream.skip_rest(budget);
  }
}

}  // namespace kshim::input
