// SPDX-License-Identifier: Apache-2.0
// Layouts: packaging.python.org, "Recording installed projects", "Binary distribution format" and "Package
// name normalization"; auditwheel's README for NAME.libs.

#include "analyzer/core/text.h"
#include "analyzer/data/wheels.h"
#include "analyzer/owner/databases.h"
#include "analyzer/owner/json_text.h"

namespace kshim::owner {
using core::contains;

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDistInfo = ".dist-info";
constexpr std::string_view kLibs = ".libs";
// The largest real RECORD, of 25,000 files, has 3 MB.
constexpr std::uint64_t kMaxRecordBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kMaxMetadataBytes = std::uint64_t{8} << 20;
constexpr std::uint64_t kMaxInstallerBytes = 4096;
constexpr std::uint64_t kMaxNoteBytes = std::uint64_t{64} << 10;
constexpr std::size_t kMaxDistributions = 5000;
constexpr std::size_t kMaxSites = 64;
// Of the layout src/NAME.
constexpr std::string_view kSourceFolder = "src/";
// What has device code has an ending of its own or none at all: names that cannot are most of a RECORD.
constexpr std::string_view kNever[] = {".py", ".pyc", ".pyi", ".h", ".hpp", ".cuh", ".txt", ".md"};

struct RecordLine {
  std::string path;
  std::string_view size;
};

// A line is PATH,HASH,SIZE; a path with a comma stands in quotes, and a quote in it is doubled.
RecordLine parse_record_line(std::string_view line) {
  RecordLine out;
  std::size_t at = 0;
  if (line.starts_with('"')) {
    for (at = 1; at < line.size(); ++at) {
      if (line[at] != '"') {
        out.path += line[at];
      } else if (at + 1 < line.size() && line[at + 1] == '"') {
        out.path += line[at++];
      } else {
        ++at;
        break;
      }
    }
  } else {
    at = std::min(line.find(','), line.size());
    out.path = line.substr(0, at);
  }
  const std::string_view rest = line.substr(at);
  if (const std::size_t comma = rest.rfind(','); comma != std::string_view::npos && comma > 0)
    out.size = rest.substr(comma + 1);
  return out;
}

// "torch-2.9.1.dist-info"
Package named_by(std::string_view folder) {
  Package out;
  folder.remove_suffix(std::min(kDistInfo.size(), folder.size()));
  const std::size_t dash = folder.rfind('-');
  out.name = folder.substr(0, dash);
  if (dash != std::string_view::npos) out.version = folder.substr(dash + 1);
  return out;
}

bool worth_keeping(std::string_view path) {
  return !path.empty() &&
         std::ranges::none_of(kNever, [&](std::string_view ending) { return path.ends_with(ending); });
}

constexpr std::string_view kFile = "file://";
constexpr std::string_view kControls[] = {"git", "hg", "svn", "bzr"};
constexpr std::string_view kSchemes[] = {"https://", "http://", "ssh://", "git://"};

using simdjson::dom::element;

// "%20" is a blank; nullopt where a percent sign has no two digits behind it.
std::optional<std::string> unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const auto value = core::parse_number<unsigned>(text.substr(i + 1, 2), 16);
    if (i + 2 >= text.size() || !value) return std::nullopt;
    out += static_cast<char>(*value);
    i += 2;
  }
  return out;
}

// Of file:///src/x and file://localhost/src/x.
std::string folder_of_url(std::string_view url) {
  if (!url.starts_with(kFile)) return {};
  url.remove_prefix(kFile.size());
  if (url.starts_with("localhost/")) url.remove_prefix(std::string_view("localhost").size());
  const auto path = unescaped(url);
  return path ? folder_of_source(*path) : std::string();
}

bool only_has(std::string_view text, std::string_view marks) {
  return std::ranges::all_of(text, [&](char c) { return core::is_alnum(c) || contains(marks, c); });
}

std::string address_of_repository(std::string_view url) {
  if (url.starts_with(kFile) && only_has(url, "-._~/+:") && !folder_of_url(url).empty())
    return std::string(url);
  const auto* scheme =
      std::ranges::find_if(kSchemes, [&](std::string_view each) { return url.starts_with(each); });
  if (scheme == std::end(kSchemes) || !only_has(url, "-._~:/@%+")) return {};
  std::string_view rest = url.substr(scheme->size());
  std::string_view host = rest.substr(0, rest.find('/'));
  rest.remove_prefix(host.size());
  const std::size_t user = host.rfind('@');
  // The user of ssh://git@host is no secret, and without it nobody gets in.
  const bool keep = *scheme == "ssh://" && user != std::string_view::npos && host.find(':') > user;
  if (user != std::string_view::npos && !keep) host.remove_prefix(user + 1);
  if (host.empty() || rest.size() < 2) return {};
  return std::string(*scheme) + std::string(host) + std::string(rest);
}

std::string repository(element root, element control) {
  const std::string kind = text_in(control, "vcs");
  const std::string address = address_of_repository(text_in(root, "url"));
  const std::string commit = text_in(control, "commit_id");
  const std::string folder = text_in(root, "subdirectory");
  const bool known = contains(kControls, kind);
  if (!known || address.empty() || commit.empty() || !only_has(commit, "-._:@") || !only_has(folder, "-._/"))
    return {};
  return kind + "+" + address + "@" + commit + (folder.empty() ? "" : "#subdirectory=" + folder);
}

}  // namespace

std::optional<SitePath> site_path(std::string_view path) {
  std::optional<SitePath> out;
  std::size_t best = 0;
  for (const std::string_view marker : {"/site-packages/", "/dist-packages/"}) {
    const std::size_t at = path.rfind(marker);
    if (at == std::string_view::npos || (out && at < best)) continue;
    best = at;
    out = SitePath{std::string(path.substr(0, at + marker.size() - 1)),
                   std::string(path.substr(at + marker.size()))};
  }
  return out;
}

std::optional<Package> PythonDistributions::owner(const std::string& path) {
  const auto place = site_path(path);
  if (!place || place->relative.empty()) return std::nullopt;
  const Site& here = site(place->folder);
  const auto owners = here.files.owners(path);
  if (owners.empty()) return by_name(*place, here);
  const std::size_t chosen = choose(place->folder, here, owners, path);
  Package out = describe(place->folder, here.distributions[owners[chosen]]);
  for (std::size_t i = 0; i < owners.size(); ++i) {
    if (i != chosen) out.also.push_back(describe(place->folder, here.distributions[owners[i]]).label());
  }
  return out;
}

const PythonDistributions::Site& PythonDistributions::site(const std::string& folder) {
  const auto [at, added] = sites_.try_emplace(folder);
  if (!added) return at->second;
  Site& out = at->second;
  for (std::string& name : names_in(folder, budget_, kDistInfo)) {
    // What pip leaves behind of an interrupted installation begins with "~".
    if (name.starts_with('~')) continue;
    if (out.distributions.size() >= kMaxDistributions) break;
    Distribution distribution;
    distribution.recorded =
        add_record(folder, name, static_cast<PathIndex::Owner>(out.distributions.size()), out.files);
    distribution.folder = std::move(name);
    out.distributions.push_back(std::move(distribution));
  }
  return out;
}

bool PythonDistributions::add_record(const std::string& folder, const std::string& name,
                                     PathIndex::Owner owner, PathIndex& files) {
  const auto record = read_bounded(fs::path(folder) / name / "RECORD", kMaxRecordBytes, budget_);
  if (!record) return false;
  bool any = false;
  each_line(*record, [&](std::string_view line) {
    const RecordLine row = parse_record_line(line);
    any = any || !row.path.empty();
    if (worth_keeping(row.path)) files.add(folder + "/" + row.path, owner);
    return true;
  });
  return any;
}

Package PythonDistributions::describe(const std::string& folder, const Distribution& distribution) {
  const fs::path info = fs::path(folder) / distribution.folder;
  Package out = named_by(distribution.folder);
  out.manager = "pip";
  if (const auto metadata = read_bounded(info / "METADATA", kMaxMetadataBytes, budget_)) {
    read_metadata(*metadata, out);
  }
  std::error_code error;
  out.requested = fs::exists(info / "REQUESTED", error);  // PEP 376
  if (const auto origin = read_bounded(info / "direct_url.json", kMaxNoteBytes, budget_))
    out.source = source_of_direct_url(*origin);
  if (const auto installer = read_bounded(info / "INSTALLER", kMaxInstallerBytes, budget_))
    each_line(*installer, [&](std::string_view line) {
      out.installer = line;
      return false;
    });
  return out;
}

// onnxruntime and onnxruntime-gpu bring the same files, and what was installed last is there: it has the size
// that is on record, or else the newer record.
std::size_t PythonDistributions::choose(const std::string& folder, const Site& site,
                                        const std::vector<PathIndex::Owner>& owners,
                                        const std::string& path) {
  if (owners.size() == 1) return 0;
  std::error_code error;
  const std::uint64_t size = fs::file_size(path, error);
  std::size_t best = 0;
  std::pair<bool, fs::file_time_type> best_rank{false, fs::file_time_type::min()};
  for (std::size_t i = 0; i < owners.size(); ++i) {
    const fs::path record = fs::path(folder) / site.distributions[owners[i]].folder / "RECORD";
    const auto text = read_bounded(record, kMaxRecordBytes, budget_);
    if (!text) continue;
    bool fits = false;
    each_line(*text, [&](std::string_view line) {
      const RecordLine row = parse_record_line(line);
      if (folder + "/" + row.path != path) return true;
      fits = !error && core::first_number<std::uint64_t>(row.size) == size;
      return false;
    });
    std::error_code no_time;
    const auto written = fs::last_write_time(record, no_time);
    const std::pair rank(fits, no_time ? fs::file_time_type::min() : written);
    if (rank > best_rank) {
      best = i;
      best_rank = rank;
    }
  }
  return best;
}

std::optional<Package> PythonDistributions::by_name(const SitePath& place, const Site& site) {
  const std::string_view first = std::string_view(place.relative).substr(0, place.relative.find('/'));
  if (first.size() == place.relative.size()) return std::nullopt;
  const bool libs = first.ends_with(kLibs) && first.size() > kLibs.size();
  const data::ProjectName wanted(libs ? first.substr(0, first.size() - kLibs.size()) : first);
  for (const Distribution& each : site.distributions) {
    if (!each.recorded && named_by(each.folder).project() == wanted) return describe(place.folder, each);
  }
  if (!libs) return std::nullopt;
  // The folder's name alone: no version, but there is no other reason for such a folder.
  const bool known = std::ranges::any_of(
      site.distributions, [&](const auto& each) { return named_by(each.folder).project() == wanted; });
  if (known) return std::nullopt;  // its RECORD is there and does not list the file: somebody else's
  Package out;
  out.name = wanted.normal();
  out.manager = "pip";
  return out;
}

bool PythonDistributions::note(const std::string& path) {
  const auto place = site_path(path);
  return place && noted_.size() < kMaxSites && noted_.insert(normal_path(place->folder)).second;
}

void PythonDistributions::find_editables(const std::string& folder) {
  for (const Distribution& each : site(folder).distributions) {
    const fs::path info = fs::path(folder) / each.folder;
    std::error_code error;
    if (editables_.size() >= kMaxDistributions || !fs::is_regular_file(info / "direct_url.json", error))
      continue;
    Editable out;
    out.package = describe(folder, each);
    if (!out.package.source.starts_with(kEditable)) continue;
    out.site = folder;
    out.folder = folder_of_source(out.package.source);
    if (const auto modules = read_bounded(info / "top_level.txt", kMaxNoteBytes, budget_))
      each_line(*modules, [&](std::string_view line) {
        if (!line.empty()) out.modules.emplace_back(line);
        return true;
      });
    editables_.push_back(std::move(out));
  }
}

std::optional<Package> PythonDistributions::editable(const std::string& path) {
  for (const std::string& folder : noted_) {
    if (searched_.insert(folder).second) find_editables(folder);
  }
  const std::string_view name = core::basename_of(path);
  const bool extension = contains(name, ".cpython-") || name.ends_with(".abi3.so");
  const Editable* best = nullptr;
  for (const Editable& each : editables_) {
    if (!path.starts_with(each.folder + "/") || !noted_.contains(each.site)) continue;
    std::string_view below = std::string_view(path).substr(each.folder.size() + 1);
    if (below.starts_with(kSourceFolder)) below.remove_prefix(kSourceFolder.size());
    // flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so is a module, vllm/_C.abi3.so lies in one.
    const bool lists =
        each.modules.empty() ? extension : contains(each.modules, below.substr(0, below.find_first_of("/.")));
    if (lists && (best == nullptr || each.folder.size() > best->folder.size())) best = &each;
  }
  return best == nullptr ? std::nullopt : std::optional(best->package);
}

std::string vendored_library(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {};
  if (!path.substr(0, slash).ends_with(kLibs)) return {};
  std::string_view name = path.substr(slash + 1);
  const std::size_t so = name.find(".so");
  if (so == std::string_view::npos || so == 0) return {};
  name = name.substr(0, so);
  // auditwheel puts some hexadecimal digits of the content's hash behind the name.
  const std::size_t dash = name.rfind('-');
  if (dash != std::string_view::npos && dash > 0 && name.size() - dash > 4 &&
      std::ranges::all_of(name.substr(dash + 1), core::is_hex))
    name = name.substr(0, dash);
  return std::string(name);
}

Package package_of_archive(std::string_view path) {
  std::string_view name = core::basename_of(path);
  Package out;
  if (name.ends_with(".whl")) {
    const std::size_t first = name.find('-');
    const std::size_t second = first == std::string_view::npos ? first : name.find('-', first + 1);
    if (second == std::string_view::npos) return out;
    out.name = name.substr(0, first);
    out.version = name.substr(first + 1, second - first - 1);
    out.manager = "pip";
  } else if (name.ends_with(".conda")) {
    name.remove_suffix(std::string_view(".conda").size());
    const std::size_t last = name.rfind('-');
    const std::size_t first = last == std::string_view::npos || last == 0 ? last : name.rfind('-', last - 1);
    if (first == std::string_view::npos || first == 0) return out;
    out.name = name.substr(0, first);
    out.version = name.substr(first + 1, last - first - 1);
    out.build = name.substr(last + 1);
    out.manager = "conda";
  }
  return out;
}

Package package_of_conda_index(std::string_view json) {
  simdjson::dom::parser parser;
  element root;
  Package out;
  if (parser.parse(json.data(), json.size()).get(root) != simdjson::SUCCESS) return out;
  out.name = text_in(root, "name");
  if (!is_package_name(out.name)) return {};
  out.version = text_in(root, "version");
  out.build = text_in(root, "build");
  out.manager = "conda";
  return out;
}

std::string source_of_direct_url(std::string_view json) {
  simdjson::dom::parser parser;
  element root;
  if (parser.parse(json.data(), json.size()).get(root) != simdjson::SUCCESS) return {};
  element info;
  if (root["vcs_info"].get(info) == simdjson::SUCCESS) return repository(root, info);
  if (root["dir_info"].get(info) != simdjson::SUCCESS) return {};
  std::string folder = folder_of_url(text_in(root, "url"));
  if (const std::string below = text_in(root, "subdirectory"); !below.empty() && !folder.empty())
    folder = normal_path(folder + "/" + below);
  if (folder.empty()) return {};
  bool editable = false;
  if (info["editable"].get(editable) != simdjson::SUCCESS) editable = false;
  return (editable ? std::string(kEditable) : std::string()) + folder;
}

bool is_source(std::string_view text) {
  if (!folder_of_source(text).empty()) return true;
  const std::size_t plus = text.find('+');
  const std::size_t commit = text.rfind('@');
  if (plus == std::string_view::npos || commit == std::string_view::npos || commit < plus) return false;
  const std::string_view kind = text.substr(0, plus);
  const std::string_view address = text.substr(plus + 1, commit - plus - 1);
  return contains(kControls, kind) && address_of_repository(address) == address &&
         only_has(text.substr(commit + 1), "-._:/#=");
}

std::string folder_of_source(std::string_view source) {
  if (source.starts_with(kEditable)) source.remove_prefix(kEditable.size());
  const auto control = [](unsigned char c) { return c < 0x20 || c == 0x7F; };
  if (!source.starts_with('/') || std::ranges::any_of(source, control)) return {};
  std::string out = normal_path(source);
  if (out.size() > 1 && out.ends_with('/')) out.pop_back();
  return out;
}

PythonEnvironment python_environment(const std::string& file, const std::string& prefix, bool conda) {
  // They are built for one another: what exchanges one has to exchange all of them that are there.
  constexpr std::array<std::string_view, 3> kTogether = {"torch", "torchvision", "torchaudio"};
  constexpr std::uint64_t kMostInSite = 65536;
  const auto is_there = [](const fs::path& path) {
    std::error_code error;
    return fs::exists(path, error);
  };
  PythonEnvironment out;
  out.conda = conda;
  const auto site = site_path(file);
  if (!site) return out;
  out.prefix = prefix;
  // PREFIX/lib/python3.11/site-packages: an environment where its own files say so (PEP 405).
  const fs::path folder = fs::path(site->folder).parent_path().parent_path().parent_path();
  if (prefix.empty() && (is_there(folder / "pyvenv.cfg") || is_there(folder / "conda-meta")))
    out.prefix = folder.string();
  if (out.prefix.empty()) return out;
  out.interpreter = out.prefix + "/bin/python";
  LookupBudget budget{.entries = kMostInSite};
  const std::vector<std::string> names = names_in(site->folder, budget);
  if (names.empty()) return out;  // another machine's: nothing is known to be missing
  out.site = site->folder;
  out.has_pip = is_there(fs::path(site->folder) / "pip") || is_there(fs::path(out.prefix) / "bin" / "pip");
  for (const std::string_view wanted : kTogether)
    for (const std::string& name : names)
      if (const Package package = named_by(name); name.ends_with(kDistInfo) && package.project() == wanted)
        out.installed.emplace_back(package.name, package.version);
  return out;
}

PythonEnvironment environment_of_program(const fs::path& program) {
  const fs::path prefix = program.parent_path().parent_path();
  std::error_code error;
  const bool conda = fs::exists(prefix / "conda-meta", error);
  if (prefix.empty() || (!conda && !fs::exists(prefix / "pyvenv.cfg", error))) return {};
  constexpr std::uint64_t kMostInFolder = 4096;
  LookupBudget budget{.entries = kMostInFolder};
  for (const std::string& name : names_in(prefix / "lib", budget))
    if (const fs::path site = prefix / "lib" / name / "site-packages";
        name.starts_with("python3") && fs::is_directory(site, error))
      return python_environment((site / "x").string(), prefix.string(), conda);
  return {};
}

std::vector<std::string> library_folders(const PythonEnvironment& environment) {
  constexpr std::uint64_t kMostInFolder = 4096;
  std::vector<std::string> out;
  if (environment.site.empty()) return out;
  LookupBudget budget{.entries = kMostInFolder};
  // nvidia/cublas/lib of CUDA 12's wheels, nvidia/cu13/lib of CUDA 13's.
  const fs::path nvidia = fs::path(environment.site) / "nvidia";
  std::error_code error;
  for (const std::string& package : names_in(nvidia, budget))
    if (const fs::path folder = nvidia / package / "lib"; fs::is_directory(folder, error))
      out.push_back(folder.string());
  std::ranges::sort(out);
  return out;
}

std::string library_folder(const PythonEnvironment& environment, std::string_view name) {
  constexpr std::uint64_t kMostInFolder = 4096;
  LookupBudget budget{.entries = kMostInFolder};
  for (const std::string& folder : library_folders(environment))
    for (const std::string& file : names_in(folder, budget))
      if (!name.empty() &&
          (file == name || (name.ends_with(".so") && file.starts_with(std::string(name) + "."))))
        return folder;
  return {};
}

}  // namespace kshim::owner
