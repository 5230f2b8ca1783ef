// SPDX-License-Identifier: Apache-2.0
// The parts of scan(): one object, findings of many files, images of containers.
#pragma once

#include "analyzer/input/files/container.h"
#include "analyzer/input/files/image_archive.h"
#include "analyzer/verbs/scan.h"

namespace kshim::verbs {

/// What a scan says of one file, or one member of an archive.
struct ObjectResult {
  ScannedObject object;
  std::vector<core::Finding> findings;
  std::vector<input::ReadNote>
      notes;                     ///< what could not be judged: damage of the file, images of unknown kinds
  bool loose = false;            ///< an image, or several, without a host file around them
  bool has_device_code = false;  ///< else nothing says that the damaged file holds any: there are only notes
};

/// nullopt for bytes without device code, and without damage to any. `object` brings path, member and
/// package. `kind`: FileKind::data is searched.
std::optional<ObjectResult> scan_object(ScannedObject object, Bytes bytes, const ScanRequest& options,
                                        input::FileKind kind = input::FileKind::device_code);

struct ObjectFacts {
  ScannedObject& object;  ///< TargetVerdict::picks is set
  const device_code::DeviceCode& code;
  const diagnose::FileCoverage& coverage;
  const Owner& owner;
  const diagnose::KernelTable* kernels = nullptr;  ///< with --kernels
  bool shared_library = false;
};

/// "{file}: 1 of 2 modules has no code for {gpu}": a pattern (Finding::headline).
std::string gap_headline(std::uint64_t part, std::uint64_t all, std::string_view word, bool at_most = false);

/// One finding a target at most, and one for damage.
std::vector<core::Finding> findings_of(ObjectFacts facts, image::Version driver);

/// Targets that the driver named with --driver does not know, whatever the files hold: one error a compute
/// capability that came after it; none for an unknown driver.
std::vector<core::Finding> old_driver_findings(const std::vector<image::Arch>& targets,
                                               image::Version driver);

/// Findings about loose images (flashinfer-cubin has 16,000 cubins): those of one package with the same cause
/// and target become one, which names the other files. A few stay as they are.
class LooseFindings {
 public:
  void add(core::Finding finding);
  void add(LooseFindings other);
  std::vector<core::Finding> take() &&;

 private:
  struct Group {
    std::vector<core::Finding> first;  ///< by the names of their files
    std::vector<std::string> others;
    std::map<std::pair<std::string, std::string>, core::ImageVerdict> images;  ///< of the others
  };
  std::map<std::string, Group> groups_;
};

/// A file beside others of its package is for other GPUs, and no problem, where its name says so, or where it
/// has `a` or `f` code alone and the others run on the target.
void excuse_files_for_other_gpus(Scan& scan);

/// One finding for each target that Scan::driver does not know, and for each file whose CUDA runtime needs a
/// newer one; of many files of a package one.
void add_old_driver_findings(Scan& scan);
/// What a driver does not read is no finding for a GPU that it does not know: one that does reads more.
void drop_what_newer_drivers_read(Scan& scan);
/// Nothing runs where the driver knows the GPU not, or the runtime refuses the driver: verdicts say so.
void refuse_by_driver(Scan& scan);

/// Findings that say the same of one file for several GPUs, and have the same remedy, become one. One build
/// is advised for all of its GPUs.
void merge_gpus_of_files(Scan& scan);

// The layers of an image, each read by itself, put together: what a later layer deletes or replaces does not
// count, and files belong to the packages that the image has.

/// A file of a layer that tells which packages are installed.
struct PackageFile {
  std::string path;
  std::string text;
};

/// What one layer holds.
struct LayerFound {
  input::LayerNames names;
  std::vector<ObjectResult> objects;  ///< ScannedObject::member is the path in the image
  std::vector<UnreadFile> unread;     ///< UnreadFile::member alike
  std::vector<PackageFile> packages;
};
/// Makes the visitor of a layer's tar keep names and package files in `out`, and visit the others.
void visit_layer(input::ContainerVisitor& visitor, LayerFound& out);
struct MergedLayers {
  std::vector<ObjectResult> objects;  ///< that the image shows, with their packages
  std::vector<UnreadFile> unread;     ///< alike
  std::string system;                 ///< "Ubuntu 24.04.3 LTS"
};
/// `layers`: the lowest first.
MergedLayers merge_layers(const std::vector<const LayerFound*>& layers);

}  // namespace kshim::verbs
