// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/machine/facts.h"

namespace kshim::input {
namespace {

// glibc, elf/cache.c and dl-cache.h: an optional table in the format of libc5, then this one. Offsets of
// strings count from the beginning of this header.
constexpr std::string_view kMagic = "glibc-ld.so.cache1.1";
constexpr std::string_view kOldMagic = "ld.so-1.7.0";
struct CacheHeader {
  char magic[20];
  std::uint32_t count, string_bytes;
  std::uint8_t flags, padding[3];
  std::uint32_t extension, unused[3];
};
static_assert(sizeof(CacheHeader) == 48);
struct CacheEntry {
  std::int32_t flags;
  std::uint32_t name, path, os_version;
  std::uint64_t hardware;
};
static_assert(sizeof(CacheEntry) == 24);
constexpr std::uint32_t kMaxEntries = 1U << 20U;

#if defined(__x86_64__)
constexpr std::int32_t kFlags = 0x0303;  // FLAG_ELF_LIBC6 | FLAG_X8664_LIB64
constexpr std::string_view kTriplet = "x86_64-linux-gnu";
#elif defined(__aarch64__)
constexpr std::int32_t kFlags = 0x0a03;  // FLAG_ELF_LIBC6 | FLAG_AARCH64_LIB64
constexpr std::string_view kTriplet = "aarch64-linux-gnu";
#endif

std::string_view text_at(std::string_view table, std::uint64_t offset) {
  if (offset >= table.size()) return {};
  const std::string_view rest = table.substr(static_cast<std::size_t>(offset), 4096);
  const std::size_t end = rest.find('\0');
  return end == std::string_view::npos ? std::string_view() : rest.substr(0, end);
}

std::string folder_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return std::string(slash == 0 || slash == std::string_view::npos ? "/" : path.substr(0, slash));
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

std::vector<std::string> own_folders() {
  return {"/lib/" + std::string(kTriplet),
          "/usr/lib/" + std::string(kTriplet),
          "/lib64",
          "/usr/lib64",
          "/lib",
          "/usr/lib"};
}

}  // namespace

std::map<std::string, std::string> read_cache(std::string_view bytes) {
  std::map<std::string, std::string> out;
  if (bytes.substr(0, kOldMagic.size()) == kOldMagic) {
    const std::size_t begin = bytes.find(kMagic);
    if (begin == std::string_view::npos) return out;
    bytes.remove_prefix(begin);
  }
  const auto header = read_le<CacheHeader>(bytes_of(bytes), 0);
  if (!header || std::string_view(header->magic, sizeof header->magic) != kMagic) return out;
  for (std::uint32_t i = 0; i < header->count && i < kMaxEntries; ++i) {
    const auto entry =
        read_le<CacheEntry>(bytes_of(bytes), sizeof(CacheHeader) + std::uint64_t{i} * sizeof(CacheEntry));
    if (!entry) break;
    // Libraries for a processor's extensions (glibc-hwcaps) stand first; CUDA's have none.
    if (entry->flags != kFlags || entry->hardware != 0) continue;
    const std::string_view name = text_at(bytes, entry->name);
    const std::string_view path = text_at(bytes, entry->path);
    if (!name.empty() && path.substr(0, 1) == "/") out.try_emplace(std::string(name), path);
  }
  return out;
}

Loader::Loader(const Machine& machine) : machine_(machine) {
  for (const std::string& folder : core::split(machine.env("LD_LIBRARY_PATH"), ":;"))
    if (folder.substr(0, 1) == "/") library_path_.push_back(folder);
  cache_ = read_cache(machine.read("/etc/ld.so.cache"));
}

// A file of another word size is passed over, as the linker does.
bool Loader::fits(std::string_view path) const {
  const auto file = device_code::elf_facts(machine_.at(path));
  return file.has_value() && file->same_class;
}

std::optional<FoundFile> Loader::in_folder(std::string_view folder, std::string_view name,
                                           std::string how) const {
  std::string path = join_path(folder, name);
  if (!machine_.is_file(path) || !fits(path)) return std::nullopt;
  std::string real = machine_.real(path);
  return FoundFile{.path = std::move(path), .real = std::move(real), .how = std::move(how)};
}

std::string Loader::expand(std::string text, const std::string& by) const {
  const std::string origin = folder_of(machine_.real(by));
  for (const std::string_view name : {"$ORIGIN", "${ORIGIN}"}) replace_all(text, name, origin);
  for (const std::string_view name : {"$LIB", "${LIB}"}) replace_all(text, name, "lib64");
  return text;
}

std::optional<FoundFile> Loader::find(std::string_view name, const std::string& by,
                                      const device_code::ElfFacts* asking) const {
  if (core::contains(name, '/')) {
    const std::size_t slash = name.rfind('/');
    return in_folder(name.substr(0, slash), name.substr(slash + 1), "its path");
  }
  const auto search = [&](const std::vector<std::string>& folders,
                          const std::string& how) -> std::optional<FoundFile> {
    for (const std::string& folder : folders)
      if (auto found = in_folder(expand(folder, by), name, how)) return found;
    return std::nullopt;
  };
  if (asking != nullptr)
    if (auto found = search(asking->rpath, "RPATH of " + by)) return found;
  if (auto found = search(library_path_, "LD_LIBRARY_PATH")) return found;
  if (asking != nullptr)
    if (auto found = search(asking->runpath, "RUNPATH of " + by)) return found;
  if (const auto cached = cache_.find(std::string(name)); cached != cache_.end()) {
    const std::string& path = cached->second;
    if (auto found = in_folder(folder_of(path), path.substr(path.rfind('/') + 1), "ld.so.cache"))
      return found;
  }
  return search(own_folders(), "the system's folders");
}

std::vector<FoundFile> Loader::all(std::string_view name) const {
  std::vector<FoundFile> out;
  const auto add = [&](std::optional<FoundFile> found) {
    if (!found) return;
    for (const FoundFile& known : out)
      if (known.real == found->real) return;
    out.push_back(std::move(*found));
  };
  for (const std::string& folder : library_path_) add(in_folder(folder, name, "LD_LIBRARY_PATH"));
  if (const auto cached = cache_.find(std::string(name)); cached != cache_.end())
    add(in_folder(folder_of(cached->second), cached->second.substr(cached->second.rfind('/') + 1),
                  "ld.so.cache"));
  for (const std::string& folder : own_folders()) add(in_folder(folder, name, "the system's folders"));
  return out;
}

}  // namespace kshim::input
