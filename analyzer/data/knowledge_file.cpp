// SPDX-License-Identifier: Apache-2.0
#include "analyzer/data/knowledge_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <deque>
#include <mutex>
#include <set>
#include <stdexcept>

#include "analyzer/core/text.h"
#include "analyzer/data/knowledge_reader.h"
#include "analyzer/data/wheels.h"
#include "kshim/files/open_file.h"

// embedded.S
#define KSHIM_TABLES(X) X(sources) X(toolkits) X(gpus) X(libraries) X(wheels) X(programs) X(messages) X(fixes)
extern "C" {
#define KSHIM_EMBEDDED(name)                                                        \
  __attribute__((visibility("hidden"))) extern const char kshim_knowledge_##name[], \
      kshim_knowledge_##name##_end[];
KSHIM_TABLES(KSHIM_EMBEDDED)
#undef KSHIM_EMBEDDED
}

namespace kshim::data {
namespace {

/// What a folder may hold.
constexpr std::string_view kFiles[] = {
#define KSHIM_FILE(name) #name ".json",
    KSHIM_TABLES(KSHIM_FILE)
#undef KSHIM_FILE
};

struct Embedded {
  const char* begin;
  const char* end;
  const char* name;
  std::string_view text() const { return {begin, static_cast<std::size_t>(end - begin)}; }
};
constexpr Embedded kEmbedded[] = {
#define KSHIM_EMBEDDED(name) {kshim_knowledge_##name, kshim_knowledge_##name##_end, "built-in " #name},
    KSHIM_TABLES(KSHIM_EMBEDDED)
#undef KSHIM_EMBEDDED
};

/// The tables that were read so far.
Knowledge& instance() {
  static Knowledge& tables = *new Knowledge;
  return tables;
}

/// What replaced built-in tables, and the newest date of those in use.
struct InUse {
  std::string date;
  std::vector<std::string> files;
  std::set<std::string_view> tables;
};
InUse& in_use() {
  static InUse& tables = *[] {
    auto* const out = new InUse;
    // The first `date` of a table is its own: schema and date come before the rows.
    constexpr std::string_view kDate = "\"date\": \"";
    constexpr std::size_t kDateSize = 10;
    for (const Embedded& table : kEmbedded)
      out->date = std::max(
          out->date, std::string(table.text().substr(table.text().find(kDate) + kDate.size(), kDateSize)));
    return out;
  }();
  return tables;
}

#define KSHIM_TABLE(section, Row, ...) #section,
constexpr std::string_view kTables[] = {
#include "analyzer/data/tables.def"
};

/// Reads a built-in table, which is not needed where a file replaced it. The image library has its own copy.
bool read_built_in(std::string_view table) {
  static std::deque<KnowledgeText>& built_in = *[] {
    auto* const out = new std::deque<KnowledgeText>;
    for (const Embedded& each : kEmbedded)
      out->emplace_back(each.text(), each.name, KnowledgeText::Rows::when_asked);
    return out;
  }();
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  if (in_use().tables.contains(table)) return true;
  const auto text =
      std::ranges::find_if(built_in, [&](const KnowledgeText& each) { return each.has(table); });
  if (text != built_in.end()) text->use(table, instance());  // the tables of tests lack some
  return true;
}

void use(KnowledgeText& text, const std::string& file) {
  text.use(instance());
  for (const std::string_view table : kTables)
    if (text.has(table)) in_use().tables.insert(table);
  in_use().files.push_back(file);
  in_use().date = std::max(in_use().date, text.date());
}

/// The bytes of a regular file; nullopt where there is none. Throws where it cannot be read, or others could
/// have written it and `own_only`.
std::optional<std::string> read_file(const std::string& path, bool own_only) {
  const files::OpenFile file = files::open_to_read(path);
  if (!file) {
    if (own_only && (file.error == ENOENT || file.error == ENOTDIR || file.error == EACCES))
      return std::nullopt;
    throw std::runtime_error(fmt::format("{}: {}", path, file.why));
  }
  if (own_only &&
      ((file.status.st_uid != 0 && file.status.st_uid != ::getuid()) || (file.status.st_mode & S_IWOTH) != 0))
    throw std::runtime_error(fmt::format("{}: somebody else can write it; it is not used", path));
  if (static_cast<std::uint64_t>(file.status.st_size) > kMaxKnowledgeBytes)
    throw std::runtime_error(fmt::format("{}: is larger than 8 MiB", path));
  std::string out(static_cast<std::size_t>(file.status.st_size), '\0');
  out.resize(files::read_at(file.fd.get(), 0, out).value_or(0));
  return out;
}

std::vector<std::string> data_folders() {
  std::vector<std::string> out = {"/usr/share/kshim"};
  const char* const data = std::getenv("XDG_DATA_HOME");
  const char* const home = std::getenv("HOME");
  if (data != nullptr && *data == '/') {
    out.push_back(std::string(data) + "/kshim");
  } else if (home != nullptr && *home == '/') {
    out.push_back(std::string(home) + "/.local/share/kshim");
  }
  return out;
}

}  // namespace

#define KSHIM_TABLE(section, Row, ...)                                  \
  std::span<const Row> section() {                                      \
    [[maybe_unused]] static const bool kRead = read_built_in(#section); \
    return instance().section;                                          \
  }
#include "analyzer/data/tables.def"
std::span<const WindowsDriverRow> windows_drivers() {
  toolkits();
  return instance().windows_drivers;
}
std::span<const GpuNameRow> gpu_names() {
  gpus();
  return instance().gpu_names;
}
const std::string& knowledge_date() { return in_use().date; }
const std::vector<std::string>& knowledge_files() { return in_use().files; }

bool is_without_source(std::string_view package) {
  const std::string name = normal_name(package);
  const auto rows = without_source();
  return std::ranges::any_of(rows, [&](const WithoutSourceRow& row) { return row.package == name; });
}

std::string_view newest_known(std::string_view distribution, std::string_view platform) {
  std::string_view out;
  for (const WheelRow& row : wheels()) {
    if (row.distribution != distribution || row.platform != platform) continue;
    if (row.last == "0") return {};
    if (out.empty() || compare_releases(row.last, out) > 0) out = row.last;
  }
  return out;
}

void replace_knowledge(std::string_view text, const std::string& file) {
  KnowledgeText read(text, file);
  use(read, file);
}

std::vector<std::string> load_knowledge(const std::string& named) {
  if (::getauxval(AT_SECURE) != 0) return {};
  const char* const variable = std::getenv("KSHIM_KNOWLEDGE");
  const std::string path = !named.empty() ? named : variable != nullptr ? variable : "";
  if (!path.empty()) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(path, ignored)) {
      if (!std::filesystem::exists(path, ignored)) throw std::runtime_error(path + ": is not there");
      replace_knowledge(*read_file(path, false), path);
      return {};
    }
    bool any = false;
    for (const std::string_view name : kFiles) {
      const std::string file = fmt::format("{}/{}", path, name);
      if (!std::filesystem::exists(file, ignored)) continue;
      replace_knowledge(*read_file(file, false), file);
      any = true;
    }
    if (!any) throw std::runtime_error(fmt::format("{}: has none of kshim's tables (wheels.json ...)", path));
    return {};
  }
  std::vector<std::string> warnings;
  const std::string built_in = in_use().date;
  std::map<std::string_view, std::string> dates;
  for (const std::string& folder : data_folders()) {
    for (const std::string_view name : kFiles) {
      const std::string file = fmt::format("{}/{}", folder, name);
      try {
        const auto bytes = read_file(file, true);
        if (!bytes) continue;
        KnowledgeText read(*bytes, file);
        std::string& date = dates.try_emplace(name, built_in).first->second;
        if (read.date() <= date) continue;
        date = read.date();
        use(read, file);
      } catch (const std::runtime_error& error) {
        warnings.emplace_back(error.what());
      }
    }
  }
  return warnings;
}

}  // namespace kshim::data
