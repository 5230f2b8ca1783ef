// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/file_gaps.h"

#include <algorithm>
#include <set>

#include "analyzer/diagnose/coverage.h"
#include "analyzer/diagnose/file_coverage.h"

namespace kshim::analysis {
namespace {

using image::ComputeCapability;

// Kernels are read for their names; beyond this many bytes of payload the names of the rest are left out.
constexpr std::uint64_t kMostPayload = std::uint64_t{256} << 20;
// What is remembered, in bytes of names; beyond, a file is read again.
constexpr std::size_t kMostNames = std::size_t{64} << 20;
constexpr std::size_t kMostKnown = 16384;

struct Unserved {
  std::vector<FileModule> modules;
  std::size_t served = 0;
  bool complete = true;  ///< every payload of them could be read
};

bool is_complete(const FileModule& module) {
  return std::all_of(module.images.begin(), module.images.end(), [](const FileImage& image) {
    return image.kernels_read || image.candidate.kind == image::ImageKind::ltoir;
  });
}

Unserved unserved_modules(std::string_view path, const ObjectFile& file, ComputeCapability cc,
                          image::Version driver) {
  Unserved out;
  const FileCoverage coverage = cover(file.code(), {{cc, image::Suffix::none}}, driver, nullptr);
  out.served = coverage.targets[0].sass + coverage.targets[0].jit;
  std::uint64_t budget = kMostPayload;
  for (const std::uint32_t index :
       missed_modules(path, file.code(), coverage.lacking[0], out.served != 0).modules) {
    FileModule module = file.module(index, budget);
    out.complete = out.complete && is_complete(module);
    if (module.has_kernels()) out.modules.push_back(std::move(module));
  }
  return out;
}

FileGap summary_of(const Unserved& unserved) {
  FileGap out;
  out.complete = unserved.complete;
  out.modules = {unserved.modules.size(), unserved.served};
  std::set<std::string> kernels;
  std::map<Program, std::size_t> known;
  for (const FileModule& module : unserved.modules) {
    for (const FileImage& image : module.images) {
      kernels.insert(image.kernels.begin(), image.kernels.end());
      ImageFact fact;
      fact.candidate = image.candidate;
      fact.compression = image.compression;
      fact.toolkit = image.toolkit;
      out.toolkit = std::max(out.toolkit, image.toolkit);
      const auto [at, first] = known.try_emplace(program_of(fact.candidate), out.images.size());
      if (first) {
        out.images.push_back(fact);
      } else {
        ++out.images[at->second].count;
      }
    }
  }
  out.kernels.assign(kernels.begin(), kernels.end());
  return out;
}

}  // namespace

std::shared_ptr<const FileGap> FileGaps::find(const ObjectRecord& object, const ObjectFile& file,
                                              ComputeCapability cc, image::Version driver) {
  const std::tuple key(&file, cc, driver);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  auto out = std::make_shared<const FileGap>(summary_of(unserved_modules(object.path, file, cc, driver)));
  std::size_t bytes = 0;
  for (const std::string& kernel : out->kernels) bytes += sizeof(kernel) + kernel.size();
  if (known_.size() < kMostKnown && bytes_ + bytes <= kMostNames) {
    bytes_ += bytes;
    known_.emplace(key, out);
  }
  return out;
}

}  // namespace kshim::analysis
