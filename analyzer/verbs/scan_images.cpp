// SPDX-License-Identifier: Apache-2.0
#include <fstream>

#include "analyzer/core/temporary_folder.h"
#include "analyzer/input/machine/facts.h"
#include "analyzer/owner/finder.h"
#include "analyzer/verbs/scan_parts.h"

namespace kshim::verbs {
namespace {

namespace fs = std::filesystem;

// Of what tells an image's packages, a layer: RECORD files and databases.
constexpr std::uint64_t kMaxPackageBytes = std::uint64_t{256} << 20;

/// `name` leads nowhere outside: image_path() made it, and no links are ever in there.
void write_below(const fs::path& folder, const std::string& name, const std::string& text) {
  std::error_code error;
  fs::create_directories((folder / name).parent_path(), error);
  if (!error) std::ofstream(folder / name, std::ios::binary) << text;
}

/// The file in an archive that an object comes from: of "a.whl!lib.so", the wheel.
std::string_view file_of(std::string_view member) { return member.substr(0, member.find('!')); }

bool is_os_release(std::string_view path) { return path == "etc/os-release" || path == "usr/lib/os-release"; }

bool is_package_file(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view folder = path.substr(0, slash);
  const std::string_view name = path.substr(slash + 1);
  if (folder.ends_with(".dist-info"))
    return name == "RECORD" || name == "METADATA" || name == "INSTALLER" || name == "direct_url.json";
  if (folder.ends_with("conda-meta")) return name.ends_with(".json") || name == "history";
  if (is_os_release(path)) return true;
  if (path.starts_with("var/lib/dpkg/info/")) return name.ends_with(".list");
  return folder == "var/lib/dpkg" && (name == "status" || name == "diversions");
}

}  // namespace

void visit_layer(input::ContainerVisitor& visitor, LayerFound& out) {
  visitor.entry = [&out](std::string_view entry, bool folder) { out.names.add(entry, folder); };
  visitor.wants = [wants = visitor.wants](std::string_view member, std::uint64_t size) {
    return wants(member, size) || is_package_file(input::image_path(member));
  };
  visitor.wants_content = [wants = visitor.wants_content](std::string_view member, Bytes first) {
    return wants(member, first) || is_package_file(input::image_path(member));
  };
  visitor.visit = [&out, visit = visitor.visit,
                   left = kMaxPackageBytes](const input::Member& member) mutable {
    const std::string path = input::image_path(member.name);
    if (!is_package_file(path)) return visit(member);
    if (member.bytes.size() > left) return;
    left -= member.bytes.size();
    out.packages.push_back({path, std::string(text_of(member.bytes))});
  };
}

MergedLayers merge_layers(const std::vector<const LayerFound*>& layers) {
  const core::TemporaryFolder root;
  MergedLayers merged;
  std::vector<ObjectResult>& out = merged.objects;
  for (std::size_t at = 0; at < layers.size(); ++at) {
    const auto hidden = [&](std::string_view path) {
      return std::any_of(layers.begin() + static_cast<std::ptrdiff_t>(at) + 1, layers.end(),
                         [&](const LayerFound* above) { return above->names.hides(path); });
    };
    for (const ObjectResult& object : layers[at]->objects)
      if (!hidden(file_of(object.object.member))) out.push_back(object);
    for (const UnreadFile& file : layers[at]->unread)
      if (!hidden(file_of(file.member))) merged.unread.push_back(file);
    for (const PackageFile& file : layers[at]->packages) {
      if (hidden(file.path)) continue;
      if (is_os_release(file.path)) merged.system = input::pretty_name(file.text);
      if (!root.path().empty()) write_below(root.path(), file.path, file.text);
    }
  }
  if (out.empty() || root.path().empty()) return merged;
  owner::Finder finder(root.path());
  for (ObjectResult& object : out) {
    const auto package = finder.in_root(std::string(file_of(object.object.member)));
    if (!package) continue;
    object.object.package = package_name(*package);
    for (core::Finding& finding : object.findings) finding.package = object.object.package;
  }
  return merged;
}

}  // namespace kshim::verbs
