// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/files/walk.h"

#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/input/files/image_archive.h"

namespace kshim::input {
namespace {

namespace fs = std::filesystem;

// Which name of a file is shown: the one that the user wrote, else the file's own and not a link's, else the
// first by the alphabet, so that the order of a folder on disk does not matter.
struct Rank {
  bool named = false;
  bool link = false;
  bool before(const Rank& other) const {
    return named != other.named ? named : !named && link != other.link && !link;
  }
  bool equal(const Rank& other) const { return !named && !other.named && link == other.link; }
};

class FolderWalk {
 public:
  void add(const fs::path& path) {
    struct stat status {};
    if (path == "-") {
      add_standard_input();
    } else if (::stat(path.c_str(), &status) != 0) {
      note(path, errno);
    } else if (S_ISDIR(status.st_mode)) {
      const std::size_t before = out_.files.size() + out_.notes.size() + out_.duplicates;
      is_image_folder(path) ? add_image_folder(path, true) : add_folder(path);
      if (out_.files.size() + out_.notes.size() + out_.duplicates == before) note(path, "holds no files");
    } else if (S_ISREG(status.st_mode)) {
      add_file(path, status, {.named = true});
    } else {
      note(path, "is neither a file nor a folder");
    }
  }
  Inputs take() && { return std::move(out_); }

 private:
  // One folder at a time is open, however deep they lie.
  void add_folder(const fs::path& top) {
    std::vector<fs::path> folders = {top};
    while (!folders.empty()) {
      const fs::path folder = std::move(folders.back());
      folders.pop_back();
      std::error_code error;
      fs::directory_iterator entry(folder, error);
      for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
        if (!add_entry(entry->path(), folders)) {
          note(folder, fmt::format("what is in it cannot be looked at ({})",
                                   std::generic_category().message(EACCES)));
          break;
        }
      }
      if (error) note(folder, error.value());
    }
  }

  /// False: the folder may be listed, but not what is in it.
  bool add_entry(const fs::path& path, std::vector<fs::path>& folders) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) {
      if (errno == EACCES) return false;
      if (errno != ENOENT) note(path, errno);  // a file that has just gone is nobody's fault
      return true;
    }
    const bool link = S_ISLNK(status.st_mode);
    // Neither is a link that leads nowhere.
    if (link && ::stat(path.c_str(), &status) != 0) {
      if (errno != ENOENT && errno != ELOOP && errno != ENOTDIR) note(path, errno);
    } else if (S_ISREG(status.st_mode)) {
      add_file(path, status, {.link = link});
    } else if (S_ISDIR(status.st_mode) && !link) {
      if (is_image_folder(path)) {
        add_image_folder(path, false);
      } else {
        folders.push_back(path);
      }
    }
    return true;
  }

  void add_image_folder(const fs::path& path, bool named) {
    out_.files.push_back({.path = path, .bytes = 0, .named = named, .image_folder = true});
  }

  void add_standard_input() {
    UnnamedFile file;
    if (!file.create()) return note("-", "no file can be made in the folder for temporary files to keep it");
    std::vector<std::byte> block(std::size_t{1} << 20);
    std::uint64_t all = 0;
    files::await_writer();
    for (;;) {
      const ssize_t size = ::read(STDIN_FILENO, block.data(), block.size());
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) return note("-", errno);
      if (size == 0) break;
      all += static_cast<std::uint64_t>(size);
      if (!file.append(Bytes(block.data(), static_cast<std::size_t>(size))))
        return note("-", "does not fit into the folder for temporary files");
    }
    out_.files.push_back({.path = file.path(), .bytes = all, .named = true, .name = "-"});
    out_.kept.push_back(std::move(file));
  }

  void add_file(const fs::path& path, const struct stat& status, Rank rank) {
    const auto [at, added] = known_.try_emplace({status.st_dev, status.st_ino}, out_.files.size(), rank);
    if (added) {
      out_.files.push_back({.path = path,
                            .bytes = static_cast<std::uint64_t>(std::max<off_t>(status.st_size, 0)),
                            .named = rank.named});
      return;
    }
    ++out_.duplicates;
    auto& [index, best] = at->second;
    Input& known = out_.files[index];
    if (!rank.before(best) && !(rank.equal(best) && path < known.path)) return;
    best = rank;
    known.path = path;
    known.named = rank.named;
  }

  void note(const fs::path& path, int error) { note(path, std::generic_category().message(error)); }
  void note(const fs::path& path, const std::string& what) { out_.notes.push_back({path.string(), what}); }

  Inputs out_;
  std::map<std::pair<dev_t, ino_t>, std::pair<std::size_t, Rank>> known_;
};

}  // namespace

Bytes read_first(const fs::path& path, std::array<std::byte, kFirstBytes>& buffer, std::string& note) {
  const files::OpenFile file = files::open_to_read(path);
  if (!file) {
    note = file.why;
    return {};
  }
  const auto size = files::read_at(file.fd.get(), 0, {reinterpret_cast<char*>(buffer.data()), buffer.size()});
  if (!size) note = fmt::format("cannot be read ({})", std::generic_category().message(errno));
  return {buffer.data(), size.value_or(0)};
}

Inputs list_inputs(const std::vector<fs::path>& paths) {
  FolderWalk walk;
  for (const fs::path& path : paths) walk.add(path);
  return std::move(walk).take();
}

}  // namespace kshim::input
