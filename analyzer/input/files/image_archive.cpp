// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/files/image_archive.h"

#include "analyzer/core/foreign_json.h"
#include "analyzer/core/text.h"
#include "analyzer/input/files/container.h"

namespace kshim::input {
using core::part_of;
using core::string_at;
using device_code::MappedFile;

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::size_t kMaxManifestBytes = std::size_t{8} << 20;
constexpr std::size_t kMaxLayers = 1024;  // of all images together; overlayfs stacks 500
constexpr std::size_t kMaxImages = 64;
constexpr std::size_t kMaxBlobs = 4096;  // read as JSON, each as often as it is named
constexpr std::size_t kMaxJson = std::size_t{64} << 20;
constexpr int kDeepestIndex = 4;
constexpr const char* kBase = "org.opencontainers.image.base.name";
constexpr std::string_view kWhiteout = ".wh.";
constexpr std::string_view kOpaque = ".wh..wh..opq";

std::string platform_of(const Json& json) {
  const std::string os = string_at(json, "os");
  const std::string architecture = string_at(json, "architecture");
  if (os.empty() || architecture.empty() || os == "unknown") return {};
  const std::string variant = string_at(json, "variant");
  return os + "/" + architecture + (variant.empty() ? "" : "/" + variant);
}

/// "sha256:1f..." is blobs/sha256/1f...
std::string blob_name(std::string_view digest) {
  const std::size_t colon = digest.find(':');
  const auto plain = [](std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, core::is_alnum);
  };
  if (colon == std::string_view::npos || !plain(digest.substr(0, colon)) || !plain(digest.substr(colon + 1)))
    return {};
  return fmt::format("blobs/{}/{}", digest.substr(0, colon), digest.substr(colon + 1));
}

std::uint64_t hash_of(std::string_view path) { return std::hash<std::string_view>{}(path); }

bool is_hash(std::string_view name) {
  constexpr std::size_t kDigits = 64;
  return name.size() >= kDigits && std::ranges::all_of(name.substr(0, kDigits), core::is_hex);
}

/// The images of an index or manifest may name blobs that are there or not.
class Reader {
 public:
  Reader(const std::function<Bytes(std::string_view)>& find, std::vector<ContainerImage>& images,
         std::vector<std::string>& notes)
      : find_(find), images_(images), notes_(notes) {}

  void read() {
    index(json_of("index.json"), kDeepestIndex, {});
    if (images_.empty() && !full_) read_docker();
    if (full_) notes_.emplace_back("holds more images, layers or manifests than are read");
  }

 private:
  void read_docker() {
    const Json manifest = json_of("manifest.json");
    if (!manifest.is_array()) return;
    for (const Json& each : manifest) {
      if (full_) break;
      ContainerImage image;
      const Json& tags = part_of(each, "RepoTags");
      if (tags.is_array() && !tags.empty() && tags[0].is_string()) image.name = tags[0].get<std::string>();
      configure(json_of(string_at(each, "Config")), image);
      const Json& layers = part_of(each, "Layers");
      if (!layers.is_array()) continue;
      for (const Json& layer : layers)
        if (layer.is_string() && !full_) add_layer(layer.get<std::string>(), layer.get<std::string>(), image);
      keep(std::move(image));
    }
  }

  Json json_of(const std::string& name) {
    const Bytes bytes = name.empty() || full_ ? Bytes() : find_(name);
    if (bytes.size() > kMaxManifestBytes) return {};
    json_ += bytes.size();
    full_ = full_ || ++blobs_ > kMaxBlobs || json_ > kMaxJson;
    return bytes.empty() || full_ ? Json() : Json::parse(text_of(bytes), nullptr, false);
  }

  void index(const Json& json, int depth, const std::string& outer_name) {
    const Json& manifests = part_of(json, "manifests");
    if (!manifests.is_array()) return;
    for (const Json& each : manifests) {
      const Json& annotations = part_of(each, "annotations");
      // Provenance and signatures: no files of the image.
      if (string_at(annotations, "vnd.docker.reference.type") == "attestation-manifest") continue;
      std::string name = string_at(annotations, "io.containerd.image.name");
      if (name.empty()) name = string_at(annotations, "org.opencontainers.image.ref.name");
      if (name.empty()) name = outer_name;
      const std::string digest = string_at(each, "digest");
      const Json blob = json_of(blob_name(digest));
      if (full_) return;
      if (!blob.is_object()) {
        notes_.push_back(fmt::format("the manifest {} is not there or is no JSON", digest));
      } else if (part_of(blob, "manifests").is_array()) {
        if (depth > 0) index(blob, depth - 1, name);
      } else {
        manifest(blob, name, platform_of(part_of(each, "platform")));
      }
    }
  }

  void manifest(const Json& json, const std::string& name, std::string platform) {
    const Json& layers = part_of(json, "layers");
    if (!layers.is_array()) return;
    ContainerImage image;
    image.name = name;
    image.base = string_at(part_of(json, "annotations"), kBase);
    configure(json_of(blob_name(string_at(part_of(json, "config"), "digest"))), image);
    if (!platform.empty()) image.platform = std::move(platform);
    for (const Json& layer : layers) {
      if (full_) break;
      const std::string digest = string_at(layer, "digest");
      // Artifacts have "layers" that are no layers of a root.
      const std::string type = string_at(layer, "mediaType");
      if (type.empty() || type.find("image") != std::string::npos)
        add_layer(digest, blob_name(digest), image);
    }
    keep(std::move(image));
  }

  static void configure(const Json& json, ContainerImage& image) {
    image.platform = platform_of(json);
    const Json& config = part_of(json, "config");
    if (image.base.empty()) image.base = string_at(part_of(config, "Labels"), kBase);
    const Json& env = part_of(config, "Env");
    if (!env.is_array()) return;
    // No Json is copied: a copy of one that is nested deeply takes all of the stack.
    for (const Json& variable : env)
      if (variable.is_string()) image.env.push_back(variable.get<std::string>());
  }

  void add_layer(std::string name, const std::string& blob, ContainerImage& image) {
    full_ = ++layers_ > kMaxLayers;
    if (full_) return;
    const Bytes bytes = blob.empty() ? Bytes() : find_(blob);
    if (bytes.empty()) notes_.push_back(fmt::format("the layer {} is not there", name));
    image.layers.push_back({std::move(name), bytes});
  }

  void keep(ContainerImage image) {
    full_ = full_ || images_.size() >= kMaxImages;
    if (!full_ && !image.layers.empty()) images_.push_back(std::move(image));
  }

  const std::function<Bytes(std::string_view)>& find_;
  std::vector<ContainerImage>& images_;
  std::vector<std::string>& notes_;
  std::size_t layers_ = 0;
  std::size_t blobs_ = 0;
  std::size_t json_ = 0;  ///< bytes
  bool full_ = false;
};

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

std::string image_path(std::string_view name) {
  const std::string out = fs::path("/" + std::string(name)).lexically_normal().relative_path().string();
  // In a root, ".." of the top is the top: lexically_normal() does the same.
  return out.ends_with('/') ? out.substr(0, out.size() - 1) : out;
}

bool may_be_image_archive(std::string_view first_name) {
  const std::string path = image_path(first_name);
  const std::string_view top = std::string_view(path).substr(0, path.find('/'));
  // Writers put a folder for the whole before what lies in it.
  if (top.empty() || top == "blobs" || top == "oci-layout" || top == "index.json" || top == "manifest.json" ||
      top == "repositories")
    return true;
  return is_hash(top.starts_with("sha256:") ? top.substr(7) : top);
}

bool ImageArchive::read(const Find& find) {
  Reader(find, images_, notes_).read();
  return !images_.empty() || !notes_.empty();
}

std::optional<ImageArchive> ImageArchive::of_tar(Bytes tar) {
  std::map<std::string, Bytes, std::less<>> files;
  std::map<std::string, std::string, std::less<>> links;
  bool image = true;
  each_tar_entry(tar, [&](const TarEntry& entry) {
    image = may_be_image_archive(entry.name);
    const std::string path = image_path(entry.name);
    if (!entry.link.empty())
      links[path] = image_path((fs::path(path).parent_path() / std::string(entry.link)).string());
    else if (!entry.bytes.empty())
      files[path] = entry.bytes;
    return image;
  });
  if (!image || (!files.contains("index.json") && !files.contains("manifest.json"))) return std::nullopt;
  ImageArchive out;
  const bool any = out.read([&](std::string_view name) {
    const std::string path = image_path(name);
    const auto link = links.find(path);  // docker before 25 links to a layer that two images share
    const auto at = files.find(link == links.end() ? path : link->second);
    return at == files.end() ? Bytes() : at->second;
  });
  return any ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<ImageArchive> ImageArchive::of_folder(const fs::path& folder) {
  ImageArchive out;
  const bool any = out.read([&](std::string_view name) {
    const std::string path = image_path(name);
    auto at = out.files_.find(path);
    if (at == out.files_.end()) {
      auto opened = MappedFile::open(folder / path);
      if (!std::holds_alternative<MappedFile>(opened)) return Bytes();
      at = out.files_.emplace(path, std::move(std::get<MappedFile>(opened))).first;
    }
    return at->second.bytes();
  });
  return any ? std::optional(std::move(out)) : std::nullopt;
}

bool is_image_folder(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / "oci-layout", error) &&
         fs::is_regular_file(folder / "index.json", error);
}

void LayerNames::add(std::string_view name, bool folder) {
  const std::string path = image_path(name);
  const std::size_t slash = path.rfind('/');
  const std::string parent = slash == std::string::npos ? std::string() : path.substr(0, slash);
  const std::string last = slash == std::string::npos ? path : path.substr(slash + 1);
  // Folders need no entries of their own.
  for (std::size_t end = slash; end != std::string::npos && end != 0; end = path.rfind('/', end - 1))
    if (!folders_.insert(hash_of(std::string_view(path).substr(0, end))).second) break;
  if (last == kOpaque) {
    opaque_.insert(hash_of(parent));
  } else if (last.starts_with(kWhiteout)) {
    files_.insert(hash_of((parent.empty() ? "" : parent + "/") + last.substr(kWhiteout.size())));
  } else {
    (folder ? folders_ : files_).insert(hash_of(path));
  }
}

bool LayerNames::hides(std::string_view path) const {
  if (folders_.contains(hash_of(path)) || opaque_.contains(hash_of(""))) return true;
  for (std::size_t end = path.find('/'); end != std::string_view::npos; end = path.find('/', end + 1)) {
    const std::uint64_t above = hash_of(path.substr(0, end));
    if (files_.contains(above) || opaque_.contains(above)) return true;
  }
  return files_.contains(hash_of(path));
}

std::optional<OpenImages> open_images(const Input& input, std::vector<ReadNote>& notes) {
  OpenImages out;
  if (input.image_folder) {
    auto archive = ImageArchive::of_folder(input.path);
    if (!archive) return std::nullopt;
    out.archive = std::move(*archive);
    return out;
  }
  auto opened = MappedFile::open(input.path);
  if (!std::holds_alternative<MappedFile>(opened)) return std::nullopt;
  Bytes tar = std::get<MappedFile>(opened).bytes();
  if (is_compressed(tar)) {
    const auto name = first_name(tar);
    if (!name || !may_be_image_archive(*name)) return std::nullopt;
    UnnamedFile file;
    bool full = !file.create();
    const std::string failure =
        full ? std::string() : inflate(tar, ContainerLimits{}.total_bytes, [&](Bytes block) {
          full = !file.append(block);
          return !full;
        });
    if (full || !failure.empty())
      notes.push_back({input.shown(), full ? "does not fit into the folder for temporary files" : failure});
    if (full) return std::nullopt;
    opened = MappedFile::open(file.path());
    if (!std::holds_alternative<MappedFile>(opened)) return std::nullopt;
    tar = std::get<MappedFile>(opened).bytes();
    out.kept.push_back(std::move(file));
  } else if (!is_tar(tar)) {
    return std::nullopt;
  }
  auto archive = ImageArchive::of_tar(tar);
  if (!archive) return std::nullopt;
  out.files.push_back(std::move(std::get<MappedFile>(opened)));
  out.archive = std::move(*archive);
  return out;
}

}  // namespace kshim::input
