// SPDX-License-Identifier: Apache-2.0
#include "analyzer/scan/walk.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "analyzer/scan/container.h"
#include "kshim/image/image.h"

namespace kshim::scan {
namespace {

namespace fs = std::filesystem;

class Walk {
 public:
  void add(const fs::path& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) {
      note(path, std::generic_category().message(errno));
    } else if (S_ISDIR(status.st_mode)) {
      add_folder(path);
    } else if (S_ISREG(status.st_mode)) {
      add_file(path, status, true);
    } else {
      note(path, "is neither a file nor a folder");
    }
  }
  Inputs take() && { return std::move(out_); }

 private:
  void add_folder(const fs::path& folder) {
    std::error_code error;
    fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error);
    for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
      struct stat status {};
      // A link that leads nowhere, or a file that has just gone, is nobody's fault.
      if (::stat(entry->path().c_str(), &status) == 0 && S_ISREG(status.st_mode))
        add_file(entry->path(), status, false);
    }
    if (error) note(folder, error.message());
  }

  void add_file(const fs::path& path, const struct stat& status, bool named) {
    if (!known_.emplace(status.st_dev, status.st_ino).second) {
      ++out_.duplicates;
      return;
    }
    out_.files.push_back({path, static_cast<std::uint64_t>(std::max<off_t>(status.st_size, 0)), named});
  }

  void note(const fs::path& path, const std::string& what) {
    out_.notes.push_back(fmt::format("{}: {}", path.string(), what));
  }

  Inputs out_;
  std::set<std::pair<dev_t, ino_t>> known_;
};

// Packages as people ship them; a `.tar.gz` in a folder may as well be a data set of 100 GB.
constexpr std::array<std::string_view, 5> kPackages = {".whl", ".conda", ".egg", ".zip", ".tar.bz2"};

bool is_package(std::string_view name) {
  return std::any_of(kPackages.begin(), kPackages.end(),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

}  // namespace

Inputs list_inputs(const std::vector<fs::path>& paths) {
  Walk walk;
  for (const fs::path& path : paths) walk.add(path);
  return std::move(walk).take();
}

FileKind file_kind(Bytes first, const std::string& name, bool named) noexcept {
  switch (image::identify(first)) {
    case image::BlobKind::fatbin:
    case image::BlobKind::fatbin_wrapper:
    case image::BlobKind::cubin:
    case image::BlobKind::ptx:
    case image::BlobKind::ltoir:
    case image::BlobKind::host_elf:
      return FileKind::device_code;
    default:
      break;
  }
  if (text_of(first).starts_with("MZ")) return FileKind::device_code;
  switch (container_kind(first, name)) {
    case ContainerKind::none:
      break;
    case ContainerKind::ar:
    case ContainerKind::thin_ar:
      return FileKind::container;
    case ContainerKind::zip:
    case ContainerKind::tar:
      return named || is_package(name) ? FileKind::container : FileKind::other;
  }
  // A PTX file whose comments alone fill the first bytes.
  return std::string_view(name).ends_with(".ptx") ? FileKind::device_code : FileKind::other;
}

}  // namespace kshim::scan
