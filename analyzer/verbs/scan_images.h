// SPDX-License-Identifier: Apache-2.0
// The layers of an image, each read by itself, put together: what a later layer deletes or replaces does not
// count, and files belong to the packages that the image has.
#pragma once

#include "analyzer/input/files/container.h"
#include "analyzer/input/files/image_archive.h"
#include "analyzer/verbs/scan_object.h"

namespace kshim::scan {

/// A file of a layer that tells which packages are installed.
struct PackageFile {
  std::string path;
  std::string text;
};

/// What one layer holds.
struct LayerFound {
  LayerNames names;
  std::vector<ObjectResult> objects;  ///< ScannedObject::member is the path in the image
  std::vector<PackageFile> packages;
};
/// Makes the visitor of a layer's tar fill `out`. `name`: of the archive.
void visit_layer(ContainerVisitor& visitor, const std::string& name, const Options& options, LayerFound& out);
struct MergedLayers {
  std::vector<ObjectResult> objects;  ///< that the image shows, with their packages
  std::string system;                 ///< "Ubuntu 24.04.3 LTS"
};
/// `layers`: the lowest first.
MergedLayers merge_layers(const std::vector<const LayerFound*>& layers);

}  // namespace kshim::scan
