// SPDX-License-Identifier: Apache-2.0
// Images of containers in a file or folder: the OCI image layout (github.com/opencontainers/image-spec,
// image-layout.md) and what `docker save` writes (github.com/moby/docker-image-spec). Blobs are known by what
// the manifests say and by their first bytes, never by their names' endings.
#pragma once
#include <unordered_set>

#include "analyzer/device_code/mapped_file.h"
#include "analyzer/input/files/walk.h"

namespace kshim::input {

struct ImageLayer {
  std::string name;  ///< its digest or path, as the manifest has it
  Bytes bytes;       ///< a tar, compressed or not; empty where it is not there
};

struct ContainerImage {
  std::string name;                ///< "ghcr.io/vllm/vllm:0.32"; empty where nothing names it
  std::string platform;            ///< "linux/amd64"; empty where nothing says
  std::string base;                ///< the image it is built on, where its annotations or labels name it
  std::vector<std::string> env;    ///< "NVIDIA_REQUIRE_ARCH=arch>=7.5", of its configuration
  std::vector<ImageLayer> layers;  ///< the lowest first
};

/// Every image of one archive or folder. Views into the archive, or into files that it keeps mapped.
class ImageArchive {
 public:
  /// nullopt for a tar that is no archive of images. `tar` is not compressed.
  static std::optional<ImageArchive> of_tar(Bytes tar);
  static std::optional<ImageArchive> of_folder(const std::filesystem::path& folder);
  const std::vector<ContainerImage>& images() const { return images_; }
  /// What the manifests name and the archive lacks, each a clause.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  using Find = std::function<Bytes(std::string_view name)>;
  bool read(const Find& find);
  std::map<std::string, device_code::MappedFile, std::less<>> files_;  ///< of a folder
  std::vector<ContainerImage> images_;
  std::vector<std::string> notes_;
};

/// Whether a folder is an image layout by the files in it.
bool is_image_folder(const std::filesystem::path& folder);
/// Whether a tar's first entry may be one of an archive of images; cheap, and certain where it says no.
bool may_be_image_archive(std::string_view first_name);

/// Which paths of lower layers a layer hides (image-spec, layer.md: "Whiteouts").
class LayerNames {
 public:
  void add(std::string_view name, bool folder);
  bool hides(std::string_view path) const;

 private:
  // By hash, so that memory does not depend on how long names are.
  std::unordered_set<std::uint64_t> files_;    ///< and what whiteouts name: the path and all below it
  std::unordered_set<std::uint64_t> folders_;  ///< the path itself
  std::unordered_set<std::uint64_t> opaque_;   ///< all below it
};

/// An entry's name as a path of the image: "./usr//lib/a.so" is "usr/lib/a.so". Empty for one that leads out
/// of it.
std::string image_path(std::string_view name);

// Images of containers among the files to read.

/// An archive or folder of images, with what its bytes lie in.
struct OpenImages {
  std::vector<UnnamedFile> kept;
  std::vector<device_code::MappedFile> files;
  ImageArchive archive;
};
/// nullopt for an input that holds none. An archive that is compressed as a whole is unpacked into a file
/// without a name.
std::optional<OpenImages> open_images(const Input& input, std::vector<ReadNote>& notes);

}  // namespace kshim::input
